//! More rows of the library: functions of MATLAB that Octave lacks in statistics and text, colours, surfaces, random
//! numbers, solvers and checks.

use super::Written;
use super::table::written;

/// More statistics, written in the language.
pub(super) static STATISTICS: &[Written] = &[
    written!("nanmax", "[m, i] = nanmax (x, y, dim)", "The greatest elements, NaN left out."),
    written!("nanmin", "[m, i] = nanmin (x, y, dim)", "The least elements, NaN left out."),
    written!("nansum", "nansum (x, dim)", "Sums, NaN left out."),
    written!("nanmean", "nanmean (x, dim)", "Means, NaN left out."),
    written!("nanvar", "nanvar (x, opt, dim)", "Variances, NaN left out."),
    written!("nanstd", "nanstd (x, opt, dim)", "Standard deviations, NaN left out."),
    written!("nanmedian", "nanmedian (x, dim)", "Medians, NaN left out."),
    written!("maxk", "[y, i] = maxk (x, k, dim)", "The greatest k elements, in order."),
    written!("mink", "[y, i] = mink (x, k, dim)", "The least k elements, in order."),
    written!(
        "normalize",
        "[n, c, s] = normalize (x, dim, method, kind)",
        "Data of mean 0 and deviation 1; by norm, scale, range, center or medianiqr otherwise."
    ),
    written!(
        "discretize",
        "[bins, edges] = discretize (x, edges, values, \"IncludedEdge\", side)",
        "The numbers of the bins that elements lie in; NaN outside of all."
    ),
    written!(
        "histcounts",
        "[n, edges, bin] = histcounts (x, bins or edges, name, value, ...)",
        "How many elements lie in each bin."
    ),
    written!(
        "fillmissing",
        "[y, filled] = fillmissing (x, method, constant, dim, \"EndValues\", how)",
        "What is missing filled in: constant, previous, next, nearest or linear."
    ),
    written!(
        "standardizeMissing",
        "standardizeMissing (x, missing)",
        "Elements that stand for missing ones as NaN, blanks or empty texts."
    ),
    written!(
        "isoutlier",
        "[out, low, high, middle] = isoutlier (x, method, dim, \"ThresholdFactor\", f)",
        "Which elements lie far off: by median, mean or quartiles."
    ),
    written!("peak2peak", "peak2peak (x, dim)", "The greatest minus the least."),
    written!("issortedrows", "issortedrows (x, columns)", "Whether rows are in order."),
    written!("findgroups", "[g, id] = findgroups (a)", "The number of the group of equal elements that each is in."),
    written!("splitapply", "[y, ...] = splitapply (fcn, x, ..., g)", "A function of each group of elements or rows."),
];

/// Surfaces and turns, written in the language.
pub(super) static SURFACES: &[Written] = &[
    written!("sphere", "[x, y, z] = sphere (n)", "The unit sphere as a grid; without outputs, nothing is drawn."),
    written!(
        "cylinder",
        "[x, y, z] = cylinder (r, n)",
        "A cylinder of radii R and height 1 as a grid; without outputs, nothing is drawn."
    ),
    written!(
        "ellipsoid",
        "[x, y, z] = ellipsoid (xc, yc, zc, xr, yr, zr, n)",
        "An ellipsoid as a grid; without outputs, nothing is drawn."
    ),
    written!(
        "peaks",
        "[x, y, z] = peaks (n)",
        "A function of two variables with hills and hollows; without outputs, nothing is drawn."
    ),
    written!("rotx", "rotx (degrees)", "The matrix that turns about the x axis."),
    written!("roty", "roty (degrees)", "The matrix that turns about the y axis."),
    written!("rotz", "rotz (degrees)", "The matrix that turns about the z axis."),
    written!(
        "convhull",
        "h = convhull (x, y)",
        "The corners of the smallest convex polygon around points, counter-clockwise, closed."
    ),
    written!("stairs", "[xs, ys] = stairs (x, y)", "The corners of steps; without two outputs, nothing is drawn."),
];

/// Colours, written in the language.
pub(super) static COLOURS: &[Written] = &[
    written!("jet", "map = jet (n)", "From blue by cyan, yellow to red."),
    written!("hsv", "map = hsv (n)", "All hues."),
    written!("gray", "map = gray (n)", "From black to white."),
    written!("hot", "map = hot (n)", "From black by red and yellow to white."),
    written!("cool", "map = cool (n)", "From cyan to magenta."),
    written!("parula", "map = parula (n)", "From blue by green to yellow: near MATLAB's."),
    written!("viridis", "map = viridis (n)", "From violet by green to yellow, evenly."),
    written!("turbo", "map = turbo (n)", "A smoother jet."),
    written!("bone", "map = bone (n)", "From black to white with a tinge of blue."),
    written!("copper", "map = copper (n)", "From black to copper."),
    written!("pink", "map = pink (n)", "From black to white with a tinge of pink."),
    written!("spring", "map = spring (n)", "From magenta to yellow."),
    written!("summer", "map = summer (n)", "From green to yellow."),
    written!("autumn", "map = autumn (n)", "From red to yellow."),
    written!("winter", "map = winter (n)", "From blue to green."),
    written!("lines", "map = lines (n)", "The colours of lines in turn."),
    written!("rainbow", "map = rainbow (n)", "From red to violet."),
    written!("prism", "map = prism (n)", "The six colours of a prism in turn."),
    written!("flag", "map = flag (n)", "Red, white, blue and black in turn."),
    written!("ocean", "map = ocean (n)", "From black by blue to white."),
    written!("white", "map = white (n)", "White alone."),
    written!("cubehelix", "map = cubehelix (n, start, turns, hue, gamma)", "From black by a spiral of hues to white."),
    written!(
        "colormap",
        "map = colormap (map)",
        "The map that it is given, or the one that figures begin with; nothing is drawn."
    ),
    written!("rgb2hsv", "rgb2hsv (x)", "Hue, saturation and value of colours or of a picture."),
    written!("hsv2rgb", "hsv2rgb (x)", "Red, green and blue of colours or of a picture by hue, saturation and value."),
    written!("ind2rgb", "picture = ind2rgb (x, map)", "The picture whose pixels are numbers of colours."),
    written!(
        "ind2gray",
        "picture = ind2gray (x, map)",
        "The brightness of a picture whose pixels are numbers of colours."
    ),
    written!("gray2ind", "[x, map] = gray2ind (picture, n)", "A grey picture in n greys, as their numbers."),
];

/// Random numbers, written in the language.
pub(super) static RANDOM: &[Written] = &[
    written!("randg", "randg (a, m, n, ..., class)", "Random numbers of the gamma distribution."),
    written!("randp", "randp (l, m, n, ..., class)", "Random numbers of the Poisson distribution."),
];

/// More functions of numbers and matrices, written in the language.
pub(super) static NUMBERS: &[Written] = &[
    written!(
        "normest1",
        "[c, v, w, steps] = normest1 (a)",
        "The 1-norm of a matrix, or of what a function multiplies by."
    ),
    written!("condest", "[c, v] = condest (a)", "The condition number of a matrix in the 1-norm."),
    written!(
        "movslice",
        "[slices, centres, before, after, window] = movslice (n, wlen)",
        "The places of each of the windows that move over n elements."
    ),
    written!("interpft", "interpft (x, n, dim)", "A periodic signal at n points, by way of its spectrum."),
    written!(
        "interpn",
        "interpn (x1, x2, ..., v, y1, y2, ..., method, extrap)",
        "Values between the samples of a grid of any dimension: linear, nearest, spline."
    ),
    written!(
        "bicgstab",
        "[x, flag, relres, iter, resvec] = bicgstab (A, b, tol, maxit, M1, M2, x0)",
        "Solves A x = b by stabilized biconjugate gradients."
    ),
    written!(
        "cgs",
        "[x, flag, relres, iter, resvec] = cgs (A, b, tol, maxit, M1, M2, x0)",
        "Solves A x = b by squared conjugate gradients."
    ),
    written!(
        "bicg",
        "[x, flag, relres, iter, resvec] = bicg (A, b, tol, maxit, M1, M2, x0)",
        "Solves A x = b by biconjugate gradients."
    ),
    written!(
        "gmres",
        "[x, flag, relres, iter, resvec] = gmres (A, b, restart, tol, maxit, M1, M2, x0)",
        "Solves A x = b by least residuals."
    ),
    written!(
        "polyeig",
        "[v, z] = polyeig (C0, C1, ...)",
        "The numbers z with det (C0 + C1 z + ...) = 0, and their vectors."
    ),
    written!("sinint", "sinint (x)", "The sine integral of real numbers."),
    written!("cosint", "cosint (x)", "The cosine integral of real numbers."),
    written!("ellipj", "[sn, cn, dn] = ellipj (u, m)", "Jacobi's elliptic functions of real numbers."),
    written!("cholinv", "cholinv (a)", "The inverse of a positive definite matrix."),
    written!("chol2inv", "chol2inv (r)", "The inverse of r' r of an upper triangular matrix."),
    written!("subspace", "angle = subspace (a, b)", "The largest angle between two column spaces."),
    written!("bandwidth", "[lower, upper] = bandwidth (a, type)", "How far from the diagonal elements are not 0."),
    written!("isequalwithequalnans", "isequalwithequalnans (a, b, ...)", "isequaln, by its older name."),
    written!("flipdim", "flipdim (x, dim)", "flip, by its older name."),
    written!("humps", "[x, y] = humps (x)", "A function with two peaks, for trying things out."),
    written!("housh", "[v, beta, zero] = housh (x, j, z)", "A Householder vector."),
    written!("duplication_matrix", "duplication_matrix (n)", "The matrix that makes vec (a) of vech (a)."),
    written!("commutation_matrix", "commutation_matrix (m, n)", "The matrix that makes vec (a') of vec (a)."),
    written!("divergence", "divergence (x, y, z, fx, fy, fz)", "The divergence of a field."),
    written!("base64_encode", "base64_encode (x)", "The bytes of numbers in base 64."),
    written!("base64_decode", "base64_decode (text, dims)", "The doubles whose bytes a text in base 64 has."),
    written!(
        "ver",
        "v = ver (package)",
        "The name and version of what runs the script, or nothing of another package."
    ),
    written!(
        "ols",
        "[beta, sigma, r] = ols (y, x)",
        "Ordinary least squares: coefficients, covariance of errors, residuals."
    ),
    written!(
        "run_count",
        "run_count (x, n, dim)",
        "How many upward runs there are of lengths 1 to n - 1 and of n or more."
    ),
    written!("iscolormap", "iscolormap (x)", "Whether a matrix is a map of colours."),
    written!(
        "balance",
        "[s, p, aa] = balance (a, option)",
        "A matrix with the same eigenvalues whose rows and columns have norms that are near each other."
    ),
    written!("condeig", "[v, lambda, c] = condeig (a)", "The condition numbers of eigenvalues."),
    written!("curl", "[cx, cy, cz, v] = curl (x, y, z, fx, fy, fz)", "The curl of a field, and its angular velocity."),
    written!("dsearchn", "[i, d] = dsearchn (x, tri, xi, outval)", "The nearest of points, and how far away they are."),
    written!("sinetone", "sinetone (freq, rate, sec, ampl)", "Samples of sines."),
    written!("license", "license (what, feature)", "The licence, or whether a feature is there."),
    written!("ls", "list = ls (names)", "The names of files."),
    written!("what", "w = what (directory)", "The scripts, MAT files and classes of a folder."),
];

/// More functions of text, written in the language.
pub(super) static TEXTS: &[Written] = &[
    written!("pad", "pad (text, width, side, letter)", "Texts with blanks, or a letter, up to a width."),
    written!("strip", "strip (text, side, letter)", "Texts without the blanks, or a letter, at their ends."),
    written!("join", "join (texts, delimiter, dim)", "The texts of each row of a cell array as one."),
    written!(
        "count",
        "count (text, pattern, \"IgnoreCase\", value)",
        "How often a pattern, or any of several, occurs in texts."
    ),
    written!("replace", "replace (text, old, new)", "Texts with each occurrence of old texts replaced."),
    written!("reverse", "reverse (text)", "Texts from their ends."),
    written!(
        "extractBefore",
        "extractBefore (text, pattern or position)",
        "What stands before the first occurrence of a pattern, or before a position."
    ),
    written!(
        "extractAfter",
        "extractAfter (text, pattern or position)",
        "What stands behind the first occurrence of a pattern, or behind a position."
    ),
    written!(
        "extractBetween",
        "extractBetween (text, first, last, \"Boundaries\", how)",
        "The parts of texts between two others, or two positions, in a cell array."
    ),
    written!(
        "eraseBetween",
        "eraseBetween (text, first, last, \"Boundaries\", how)",
        "Texts without what stands between two others, or two positions."
    ),
    written!(
        "replaceBetween",
        "replaceBetween (text, first, last, new, \"Boundaries\", how)",
        "Texts with another one between two, or between two positions."
    ),
    written!(
        "insertBefore",
        "insertBefore (text, pattern or position, new)",
        "Texts with a new one before each occurrence of a pattern, or before a position."
    ),
    written!(
        "insertAfter",
        "insertAfter (text, pattern or position, new)",
        "Texts with a new one behind each occurrence of a pattern, or behind a position."
    ),
    written!(
        "textread",
        "[a, b, ...] = textread (file, template, name, value, ...)",
        "Reads columns from a text file."
    ),
    written!("run", "run (script)", "Runs a script file in the caller's variables, from the folder where it lies."),
    written!("dir", "list = dir (folder or pattern)", "What is in a folder, or which files fit a pattern."),
    written!("glob", "names = glob (pattern)", "The files whose paths fit a pattern of *, ? and [...]."),
    written!("is_absolute_filename", "is_absolute_filename (name)", "Whether a path begins at the root."),
    written!("make_absolute_filename", "make_absolute_filename (name)", "A path from the root on."),
    written!(
        "parseparams",
        "[rest, value, ...] = parseparams (args, name, default, ...)",
        "Arguments, and the values of the options that follow them."
    ),
    written!("splitlines", "splitlines (text)", "The lines of a text in a cell array."),
    written!("split", "split (text, delimiter)", "The parts of texts between delimiters, or blanks, in a cell array."),
    written!(
        "convertStringsToChars",
        "[a, ...] = convertStringsToChars (a, ...)",
        "Its arguments: texts are char arrays here."
    ),
    written!(
        "convertCharsToStrings",
        "[a, ...] = convertCharsToStrings (a, ...)",
        "Its arguments: texts are char arrays here."
    ),
    written!("isStringScalar", "isStringScalar (x)", "Whether a value is one string object: none is."),
    written!("vectorize", "vectorize (f)", "An expression or anonymous function with .*, ./ and .^ for *, / and ^."),
    written!("formula", "formula (f)", "The expression of an inline function."),
    written!("argnames", "argnames (f)", "The names of the arguments of an inline function, in a column."),
    written!("strmatch", "strmatch (s, a, \"exact\")", "The numbers of the texts that begin with a text."),
    written!("findstr", "findstr (s, t, overlap)", "Where the shorter of two texts stands in the longer one."),
    written!("setstr", "setstr (x)", "char, by its older name."),
    written!("isstr", "isstr (x)", "ischar, by its older name."),
    written!("genvarname", "genvarname (text, taken)", "A name for a variable that is not taken."),
    written!("namelengthmax", "namelengthmax ()", "63, the longest name that every system takes."),
    written!("calendar", "days = calendar (year, month)", "The days of a month, a row a week from Sunday on."),
    written!(
        "readlines",
        "lines = readlines (file)",
        "The lines of a text file in a cell array; what follows the last line end is one, too."
    ),
    written!("writelines", "writelines (lines, file)", "Writes texts as the lines of a file."),
];

/// Checks of arguments, written in the language.
pub(super) static CHECKS: &[Written] = &[
    written!(
        "fail",
        "fail (code, \"warning\", pattern)",
        "An error unless code fails, or warns, with a message that fits."
    ),
    written!("mustBeFinite", "mustBeFinite (x)", "An error unless all elements are finite."),
    written!("mustBeNonNan", "mustBeNonNan (x)", "An error if an element is NaN."),
    written!("mustBePositive", "mustBePositive (x)", "An error unless all elements are above 0."),
    written!("mustBeNegative", "mustBeNegative (x)", "An error unless all elements are below 0."),
    written!("mustBeNonnegative", "mustBeNonnegative (x)", "An error if an element is below 0."),
    written!("mustBeNonpositive", "mustBeNonpositive (x)", "An error if an element is above 0."),
    written!("mustBeNonzero", "mustBeNonzero (x)", "An error if an element is 0."),
    written!("mustBeNonempty", "mustBeNonempty (x)", "An error if an array has no elements."),
    written!("mustBeNumeric", "mustBeNumeric (x)", "An error unless an array is numeric."),
    written!("mustBeNumericOrLogical", "mustBeNumericOrLogical (x)", "An error unless an array is numeric or logical."),
    written!("mustBeReal", "mustBeReal (x)", "An error if an array is complex."),
    written!("mustBeNonsparse", "mustBeNonsparse (x)", "An error if an array is sparse: none is."),
    written!("mustBeInteger", "mustBeInteger (x)", "An error unless all elements are whole numbers."),
    written!("mustBeLessThan", "mustBeLessThan (x, c)", "An error unless all elements are below a number."),
    written!("mustBeLessThanOrEqual", "mustBeLessThanOrEqual (x, c)", "An error if an element is above a number."),
    written!("mustBeGreaterThan", "mustBeGreaterThan (x, c)", "An error unless all elements are above a number."),
    written!(
        "mustBeGreaterThanOrEqual",
        "mustBeGreaterThanOrEqual (x, c)",
        "An error if an element is below a number."
    ),
    written!("mustBeMember", "mustBeMember (x, valid)", "An error unless all elements are among the valid ones."),
];

/// Functions that only functions of the library call.
pub(super) static SHARED: &[Written] = &[
    written!(
        "must_be",
        "must_be (who, args, name, good, words, how)",
        "An error unless GOOD says yes to each element of the argument."
    ),
    written!(
        "area_options",
        "[tolerances, vectorized] = area_options (who, xa, xb, args, loosest)",
        "The options of integrals over areas and volumes."
    ),
    written!(
        "same_size_numbers",
        "[a, b, c] = same_size_numbers (who, names, a, b, c)",
        "Numbers, scalars of them as large as the others."
    ),
    written!("three_columns", "[a, b, c] = three_columns (who, what, m)", "The columns of a matrix of three."),
    written!("area_limit", "limit = area_limit (who, name, limit)", "The limit of an integral as a function."),
    written!(
        "integral_over_area",
        "q = integral_over_area (who, fcn, xa, xb, ya, yb, options)",
        "The integral of a function of two variables."
    ),
    written!("each_text", "each_text (who, text, fcn)", "A function of a text, or of each of a cell array of texts."),
    written!(
        "between_bounds",
        "[from, to] = between_bounds (who, t, first, last, inclusive)",
        "Where the parts of a text between two others, or two positions, begin and end."
    ),
    written!(
        "indexed_colours",
        "parts = indexed_colours (who, x, map)",
        "Red, green and blue of pixels that are numbers of colours."
    ),
    written!(
        "colour_steps",
        "[n, x] = colour_steps (who, args)",
        "How many colours a map has, and as many numbers from 0 to 1."
    ),
    written!(
        "colour_rows",
        "[list, shape] = colour_rows (who, what, x)",
        "Red, green and blue, or what else colours are made of, as rows."
    ),
    written!("colours_shaped", "x = colours_shaped (list, shape)", "Rows of colours as the picture they are of."),
    written!("times_matrix", "y = times_matrix (a, x)", "A matrix, or a function that stands for one, times a vector."),
    written!("over_matrix", "y = over_matrix (m1, m2, x)", "What two preconditioners leave of a vector."),
    written!("base64_letters", "text = base64_letters (bytes)", "Bytes in base 64."),
    written!("base64_bytes", "bytes = base64_bytes (who, text)", "The bytes that a text in base 64 spells."),
];

/// Functions of networks, written in the language.
pub(super) static NETWORKS: &[Written] = &[
    written!("relu", "relu (x)", "The elements, and 0 where they are negative."),
    written!("sigmoid", "sigmoid (x)", "1 / (1 + exp (-x))."),
];
