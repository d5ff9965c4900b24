//! The rows of the library: names, uses and texts.

use super::{Written, table_more};

/// Reads the text beside this file that has the function's name.
macro_rules! written {
    ($name:literal, $usage:literal, $summary:literal) => {
        Written::new($name, $usage, $summary, include_str!(concat!($name, ".m")))
    };
}

pub(super) use written;

/// Returns all functions in the order of the documentation: titles, each with its rows.
pub fn families() -> &'static [(&'static str, &'static [Written])] {
    static FAMILIES: &[(&str, &[Written])] = &[
        (
            "Statistics, written in the language",
            &[
                written!(
                    "cov",
                    "c = cov (x, y, opt, nanflag)",
                    "The covariance matrix of columns, or of two variables."
                ),
                written!("corr", "r = corr (x, y)", "Correlations of the columns of two matrices."),
                written!(
                    "corrcoef",
                    "[r, p, low, high] = corrcoef (x, y, \"alpha\", a, \"rows\", which)",
                    "The matrix of correlation coefficients, how likely chance alone gives them, and their confidence limits."
                ),
                written!("skewness", "skewness (x, flag, dim)", "The skewness of a sample."),
                written!("kurtosis", "kurtosis (x, flag, dim)", "The kurtosis of a sample."),
                written!(
                    "zscore",
                    "[z, mu, sigma] = zscore (x, opt, dim)",
                    "Deviations from the mean in standard deviations."
                ),
                written!("center", "center (x, dim)", "What is left of an array after its mean is taken off."),
                written!("mad", "mad (x, opt, dim)", "The mean (0) or median (1) absolute deviation."),
                written!(
                    "rescale",
                    "rescale (x, low, high, option, value)",
                    "An array scaled to an interval, [0, 1] by default."
                ),
                written!(
                    "hist",
                    "[n, x] = hist (y, x, scale)",
                    "How many elements are nearest to each centre; without outputs, nothing is drawn."
                ),
                written!(
                    "movfun",
                    "movfun (fcn, x, wlen, option, value)",
                    "A function of a moving window, by default cut off at the ends."
                ),
                written!("movmean", "movmean (x, wlen)", "Means of a moving window."),
                written!("movmedian", "movmedian (x, wlen)", "Medians of a moving window."),
                written!("movmin", "movmin (x, wlen)", "The least of a moving window."),
                written!("movmax", "movmax (x, wlen)", "The greatest of a moving window."),
                written!("movsum", "movsum (x, wlen)", "Sums of a moving window."),
                written!("movstd", "movstd (x, wlen)", "Standard deviations of a moving window."),
                written!("movvar", "movvar (x, wlen)", "Variances of a moving window."),
                written!(
                    "accumdim",
                    "a = accumdim (subs, values, dim, n, fcn, fill)",
                    "Slices of an array summed by their numbers along a dimension."
                ),
                written!("moment", "moment (x, p, type, dim)", "The moments of a sample."),
                written!("ranks", "ranks (x, dim, type)", "The ranks of elements; equal ones share theirs."),
                written!("spearman", "spearman (x, y)", "Correlations of ranks."),
                written!("kendall", "kendall (x, y)", "Kendall's correlation of orders."),
                written!(
                    "statistics",
                    "statistics (x, dim)",
                    "The least, quartiles, greatest, mean, deviation, skewness and kurtosis."
                ),
                written!("runlength", "[count, value] = runlength (x)", "How often each element of a vector repeats."),
                written!("movprod", "movprod (x, wlen)", "Products of a moving window."),
                written!("movmad", "movmad (x, wlen)", "Mean absolute deviations of a moving window."),
                written!("nth_element", "nth_element (x, n, dim)", "The nth least elements."),
                written!(
                    "ismissing",
                    "ismissing (a, missing)",
                    "Which elements are missing: NaN, blanks, empty texts, or those named."
                ),
                written!(
                    "rmmissing",
                    "[r, gone] = rmmissing (a, dim)",
                    "An array without its rows (1) or columns (2) that miss an element."
                ),
            ],
        ),
        (
            "Geometry, written in the language",
            &[
                written!(
                    "cart2pol",
                    "[theta, r, z] = cart2pol (x, y, z)",
                    "Polar or cylindrical coordinates of Cartesian ones."
                ),
                written!(
                    "pol2cart",
                    "[x, y, z] = pol2cart (theta, r, z)",
                    "Cartesian coordinates of polar or cylindrical ones."
                ),
                written!(
                    "cart2sph",
                    "[theta, phi, r] = cart2sph (x, y, z)",
                    "Spherical coordinates of Cartesian ones."
                ),
                written!(
                    "sph2cart",
                    "[x, y, z] = sph2cart (theta, phi, r)",
                    "Cartesian coordinates of spherical ones."
                ),
                written!("polyarea", "polyarea (x, y, dim)", "The area of a polygon."),
                written!(
                    "inpolygon",
                    "[in, on] = inpolygon (x, y, xv, yv)",
                    "Whether points lie in a polygon or on its edge."
                ),
                written!(
                    "rectint",
                    "rectint (a, b)",
                    "The areas, or volumes, that rectangles [x, y, width, height] share."
                ),
            ],
        ),
        (
            "Signals, written in the language",
            &[
                written!("fftshift", "fftshift (x, dim)", "Moves the zero frequency to the middle."),
                written!("ifftshift", "ifftshift (x, dim)", "Undoes fftshift."),
                written!("sinc", "sinc (x)", "sin (pi x) / (pi x)."),
                written!("hamming", "hamming (m, \"periodic\")", "The Hamming window."),
                written!("hanning", "hanning (m, \"periodic\")", "The Hann window without its zeros at the ends."),
                written!("hann", "hann (m, \"periodic\")", "The Hann window with its zeros at the ends."),
                written!("blackman", "blackman (m, \"periodic\")", "The Blackman window."),
                written!("bartlett", "bartlett (m)", "The triangular window."),
                written!("unwrap", "unwrap (x, tol, dim)", "Angles without jumps of more than half a turn."),
                written!("detrend", "detrend (x, p)", "What is left of data after a polynomial trend is taken off."),
                written!("filter2", "filter2 (b, x, shape)", "A two-dimensional filter."),
                written!("fftconv", "fftconv (x, y, n)", "The convolution of two vectors by way of their transforms."),
                written!("fftfilt", "fftfilt (b, x)", "A filter without feedback by way of transforms."),
                written!("freqz", "[h, w] = freqz (b, a, n)", "The frequency response of a filter."),
                written!("periodogram", "[p, w] = periodogram (x)", "The power spectral density of a signal."),
                written!("del2", "del2 (m, h)", "The discrete Laplacian, over twice the number of dimensions."),
                written!(
                    "gradient",
                    "[dx, dy, ...] = gradient (m, h, ...)",
                    "Differences over distances along each dimension."
                ),
            ],
        ),
        (
            "Polynomials and curves, written in the language",
            &[
                written!("polyout", "polyout (c, x)", "A polynomial as text."),
                written!("polyreduce", "polyreduce (p)", "A polynomial without its leading zeros."),
                written!("polyaffine", "polyaffine (f, mu)", "A polynomial of a shifted and scaled variable."),
                written!("polygcd", "polygcd (b, a, tol)", "The greatest common divisor of two polynomials."),
                written!(
                    "residue",
                    "[r, p, k, e] = residue (b, a)",
                    "Partial fractions of a quotient of polynomials; [b, a] = residue (r, p, k, e) is their sum."
                ),
                written!(
                    "mpoles",
                    "[m, n] = mpoles (p, tol, reorder)",
                    "Poles that are equal, with their multiplicities."
                ),
                written!("mkpp", "pp = mkpp (x, p, d)", "A piecewise polynomial."),
                written!("unmkpp", "[x, p, n, k, d] = unmkpp (pp)", "The parts of a piecewise polynomial."),
                written!("ppval", "ppval (pp, xi)", "A piecewise polynomial's values."),
                written!("spline", "spline (x, y, xi)", "A cubic spline through samples."),
                written!("pchip", "pchip (x, y, xi)", "A cubic curve through samples that is monotone where they are."),
                written!(
                    "interp2",
                    "interp2 (x, y, z, xi, yi, method, extrap)",
                    "Values between the samples of a grid: linear, nearest, pchip, cubic, spline; interp2 (z, n) halves it n times."
                ),
                written!("polyvalm", "y = polyvalm (c, x)", "A polynomial of a square matrix."),
                written!("ppder", "d = ppder (pp, m)", "The derivative of a piecewise polynomial."),
                written!("ppint", "q = ppint (pp, c)", "The integral of a piecewise polynomial."),
            ],
        ),
        (
            "Roots, minima, integrals, differential equations",
            &[
                written!(
                    "optimset",
                    "options = optimset (old, name, value, ...)",
                    "Options for the functions that search."
                ),
                written!("optimget", "optimget (options, name, default)", "One of these options."),
                written!(
                    "fzero",
                    "[x, fval, info, output] = fzero (fcn, x0, options)",
                    "A root of a function of one variable."
                ),
                written!(
                    "fminbnd",
                    "[x, fval, info, output] = fminbnd (fcn, a, b, options)",
                    "A minimum of a function of one variable on an interval."
                ),
                written!(
                    "fminsearch",
                    "[x, fval, info, output] = fminsearch (fcn, x0, options)",
                    "A minimum of a function, without derivatives."
                ),
                written!(
                    "fminunc",
                    "[x, fval, info, output, grad, hess] = fminunc (fcn, x0, options)",
                    "A minimum of a smooth function."
                ),
                written!(
                    "fsolve",
                    "[x, fval, info, output, fjac] = fsolve (fcn, x0, options)",
                    "A root of a system of equations."
                ),
                written!(
                    "integral",
                    "integral (fcn, a, b, name, value, ...)",
                    "An integral; options AbsTol, RelTol, ArrayValued, Waypoints."
                ),
                written!(
                    "quadgk",
                    "[q, err] = quadgk (fcn, a, b, abstol, reltol)",
                    "An integral by adaptive Gauss-Kronrod rules, also to infinity."
                ),
                written!(
                    "quad",
                    "[q, error, evaluations, bound] = quad (fcn, a, b, tol)",
                    "An integral of a function of one number."
                ),
                written!("quadl", "[q, evaluations] = quadl (fcn, a, b, tol, trace, ...)", "An integral."),
                written!("quadv", "quadv (fcn, a, b, tol)", "An integral of a function that gives an array."),
                written!("dblquad", "dblquad (fcn, xa, xb, ya, yb)", "An integral over a rectangle."),
                written!(
                    "integral2",
                    "integral2 (fcn, xa, xb, ya, yb, option, value)",
                    "An integral over a region between two curves."
                ),
                written!(
                    "odeset",
                    "options = odeset (name, value, ...)",
                    "Options for the solvers of differential equations."
                ),
                written!("odeget", "odeget (options, name, default)", "One of these options."),
                written!(
                    "ode45",
                    "[t, y] = ode45 (fcn, tspan, y0, options)",
                    "Solves differential equations by formulas of orders 5 and 4."
                ),
                written!(
                    "ode23",
                    "[t, y] = ode23 (fcn, tspan, y0, options)",
                    "Solves differential equations by formulas of orders 3 and 2."
                ),
                written!(
                    "triplequad",
                    "q = triplequad (f, xa, xb, ya, yb, za, zb, tol, quadf)",
                    "The integral of a function of three variables."
                ),
                written!(
                    "lsqnonneg",
                    "[x, resnorm, residual, exitflag, output, lambda] = lsqnonneg (c, d, x0, options)",
                    "The least squares solution without negative elements."
                ),
            ],
        ),
        (
            "Matrices and special functions, written in the language",
            &[
                written!("sqrtm", "[s, err] = sqrtm (a)", "The matrix whose square this is."),
                written!("logm", "logm (a)", "The matrix whose exponential this is."),
                written!("linsolve", "linsolve (a, b, options)", "Solves a linear system."),
                written!(
                    "lscov",
                    "[x, stdx, mse, s] = lscov (a, b, v)",
                    "Least squares with weights or a covariance, and how exact they are."
                ),
                written!("rref", "[r, k] = rref (a, tol)", "The reduced row echelon form."),
                written!("vech", "vech (x)", "The lower triangle as a column."),
                written!("givens", "[c, s] = givens (x, y)", "The rotation that makes the second of two numbers zero."),
                written!(
                    "planerot",
                    "[g, y] = planerot (x)",
                    "The rotation that makes the second element of a vector zero."
                ),
                written!("hadamard", "hadamard (n)", "A Hadamard matrix of an order 2^k, or 2^k times 12, 20 or 28."),
                written!("isdefinite", "isdefinite (a, tol)", "Whether a matrix is positive definite."),
                written!(
                    "pcg",
                    "[x, flag, relres, iter, resvec] = pcg (a, b, tol, maxit, m1, m2, x0)",
                    "Solves a system by conjugate gradients."
                ),
                written!("expint", "expint (x)", "The exponential integral E1."),
                written!(
                    "legendre",
                    "legendre (n, x, normalization)",
                    "Associated Legendre functions of a degree, a row an order."
                ),
                written!("psi", "psi (k, x)", "The digamma function, or its derivative number k."),
                written!("ellipke", "[k, e] = ellipke (m)", "Complete elliptic integrals."),
                written!("bitget", "bitget (a, n)", "Bit n of whole numbers, from 1."),
                written!("bitset", "bitset (a, n, value)", "Whole numbers with bit n set or cleared."),
                written!("bincoeff", "bincoeff (n, k)", "Binomial coefficients of arrays."),
                written!("list_primes", "list_primes (n)", "The first primes."),
                written!("atan2d", "d = atan2d (y, x)", "The angle in degrees of a point."),
                written!("acotd", "d = acotd (x)", "The angle in degrees whose cotangent is x."),
                written!("normest", "[estimate, steps] = normest (a, tol)", "An estimate of a matrix's 2-norm."),
                written!("nzmax", "n = nzmax (x)", "How many elements are stored."),
                written!("rosser", "a = rosser ()", "Rosser's matrix: eigenvalues that are hard to tell apart."),
                written!(
                    "common_size",
                    "[err, a, b, ...] = common_size (x, y, ...)",
                    "Scalars repeated to the size of the other arguments; 1 if these differ."
                ),
                written!(
                    "uniquetol",
                    "[c, ia, ic] = uniquetol (a, tol, \"ByRows\", true, option, value)",
                    "The elements that differ by more than a tolerance."
                ),
                written!("powerset", "powerset (a, \"rows\")", "All subsets of a set."),
                written!("convn", "convn (a, b, shape)", "The convolution of arrays."),
                written!("rcond", "rcond (a)", "The reciprocal of a matrix's condition number."),
                written!("sylvester", "sylvester (a, b, c)", "The matrix x for which a x + x b is c."),
                written!(
                    "cplxpair",
                    "cplxpair (z, tol, dim)",
                    "Complex numbers in conjugate pairs, real ones behind them."
                ),
                written!("sinpi", "sinpi (x)", "The sine of pi x."),
                written!("signbit", "signbit (x)", "Whether the sign bit is set."),
                written!("issparse", "issparse (x)", "Whether an array is sparse: none is."),
                written!(
                    "integral3",
                    "integral3 (f, xa, xb, ya, yb, za, zb, option, value)",
                    "The integral over a volume."
                ),
                written!(
                    "quad2d",
                    "[q, err] = quad2d (f, xa, xb, ya, yb, option, value)",
                    "The integral over an area."
                ),
                written!("quadcc", "[q, err] = quadcc (f, a, b)", "The integral over an interval."),
                written!(
                    "lsode",
                    "[x, state, message] = lsode (fcn, x0, t)",
                    "Solves differential equations at given times."
                ),
                written!("compan", "compan (c)", "The companion matrix of a polynomial."),
            ],
        ),
        (
            "Text, dates, checks, written in the language",
            &[
                written!("inline", "f = inline (text, names, ...)", "A function of a text, as a handle."),
                written!("strtrunc", "strtrunc (s, n)", "Texts cut to a length."),
                written!("compare_versions", "compare_versions (v1, v2, operator)", "How two version numbers compare."),
                written!("verLessThan", "verLessThan (package, version)", "Whether a version is before another."),
                written!("computer", "[c, maxsize, endian] = computer (\"arch\")", "What kind of machine this is."),
                written!("newline", "newline ()", "The character that ends a line."),
                written!("isstring", "isstring (x)", "Whether a value is a string object: none is."),
                written!(
                    "contains",
                    "contains (text, pattern, \"IgnoreCase\", value)",
                    "Whether texts contain a pattern, or one of several."
                ),
                written!("erase", "erase (text, pattern)", "Texts without each occurrence of a pattern."),
                written!("height", "height (x)", "The number of rows."),
                written!("width", "width (x)", "The number of columns."),
                written!("is_leap_year", "is_leap_year (year)", "Whether years have a 29th of February."),
                written!("eomday", "eomday (year, month)", "The last day of a month."),
                written!(
                    "datenum",
                    "[days, seconds] = datenum (year, month, day, hour, minute, second)",
                    "Dates as days since the year 0."
                ),
                written!("datevec", "[y, mo, d, h, mi, s] = datevec (date, format)", "The parts of a date."),
                written!("datestr", "datestr (date, format)", "Dates as text."),
                written!("date", "date ()", "Today as text."),
                written!("gmtime", "tm = gmtime (seconds)", "The parts of a time, which counts from 1970."),
                written!("localtime", "tm = localtime (seconds)", "The parts of a time (UTC)."),
                written!("mktime", "seconds = mktime (tm)", "A time from its parts, as gmtime gives them."),
                written!("strftime", "strftime (template, tm)", "The parts of a time as text."),
                written!("asctime", "asctime (tm)", "The parts of a time as a line of text."),
                written!("ctime", "ctime (seconds)", "A time as a line of text."),
                written!("weekday", "[n, s] = weekday (d, format)", "The day of the week, 1 for Sunday."),
                written!(
                    "addtodate",
                    "addtodate (d, q, unit)",
                    "Dates moved by years, months, days and smaller units."
                ),
                written!("etime", "etime (t1, t0)", "Seconds from the clock vector t0 to t1."),
                written!("rat", "[n, d] = rat (x, tol)", "Continued fractions near numbers, as text or as quotients."),
                written!("num2hex", "num2hex (x, \"cell\")", "The bytes of numbers as hexadecimal digits."),
                written!("hex2num", "hex2num (s, class)", "Numbers of the bytes that hexadecimal digits give."),
                written!("swapbytes", "swapbytes (x)", "Numbers with their bytes in the other order."),
                written!("celldisp", "celldisp (c, name)", "Shows the items of a cell array, one after the other."),
                written!(
                    "textscan",
                    "[c, position] = textscan (fid or text, template, repeat, name, value, ...)",
                    "Reads columns of numbers and words."
                ),
                written!(
                    "strread",
                    "[a, b, ...] = strread (text, template, name, value, ...)",
                    "Reads columns from a text."
                ),
                written!(
                    "importdata",
                    "[data, delimiter, headers] = importdata (file, delimiter, headers)",
                    "The numbers of a text file, with its headings."
                ),
                written!(
                    "validateattributes",
                    "validateattributes (x, classes, attributes, who, name)",
                    "An error unless a value has these classes and attributes."
                ),
            ],
        ),
        ("More statistics, written in the language", table_more::STATISTICS),
        ("Surfaces and turns, written in the language", table_more::SURFACES),
        ("Colours, written in the language", table_more::COLOURS),
        ("Random numbers, written in the language", table_more::RANDOM),
        ("More functions of numbers and matrices, written in the language", table_more::NUMBERS),
        ("More functions of text, written in the language", table_more::TEXTS),
        ("Checks of arguments, written in the language", table_more::CHECKS),
        ("Functions of networks, written in the language", table_more::NETWORKS),
        (
            "Octave's smaller functions, written in the language",
            &[
                written!("shift", "shift (x, b, dim)", "An array whose elements go round by b places."),
                written!(
                    "repelems",
                    "repelems (x, r)",
                    "Elements of x by the numbers in r's first row, each r's second row often."
                ),
                written!("acscd", "acscd (x)", "The angle in degrees whose cosecant is x."),
                written!("asecd", "asecd (x)", "The angle in degrees whose secant is x."),
                written!("native2unicode", "native2unicode (bytes, codepage)", "Bytes as text, which is UTF-8."),
                written!("unicode2native", "unicode2native (text, codepage)", "The bytes of a text, which is UTF-8."),
                written!(
                    "list_in_columns",
                    "list_in_columns (list, width, prefix)",
                    "Texts in columns as `ls` lists them."
                ),
                written!("symvar", "symvar (str)", "The names in an expression that may be variables."),
            ],
        ),
    ];
    FAMILIES
}

/// Returns the functions that only library functions may call. Scripts do not see them.
pub fn shared() -> impl Iterator<Item = &'static Written> {
    static SHARED: &[Written] = &[
        written!(
            "embedded_steps",
            "[t, y] = embedded_steps (name, fcn, tspan, y0, c, a, b, e, order, refine, options)",
            "Solves differential equations by a given pair of formulas."
        ),
        written!(
            "in_parts",
            "[y, ...] = in_parts (f, x, ...)",
            "What a function makes of columns of one size, computed for a few thousand elements at a time."
        ),
        written!(
            "spliced",
            "t = spliced (t, from, to, new)",
            "A text with another in place of each of its parts from and to such places."
        ),
    ];
    SHARED.iter().chain(table_more::SHARED)
}
