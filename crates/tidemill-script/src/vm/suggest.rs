//! Suggestions for unknown names: similar names, and functions that are known to be missing.

/// Why a function of MATLAB is missing here, and what to use instead.
pub(super) fn missing(name: &str) -> Option<&'static str> {
    Some(match name {
        "sparse" | "speye" | "spones" | "spalloc" | "sprand" | "sprandn" | "spdiags" => {
            "sparse arrays are not supported yet: use full ones"
        }
        "table" | "timetable" | "readtable" | "array2table" | "struct2table" | "cell2table" => {
            "tables are not supported yet: use a struct of columns"
        }
        "datetime" | "duration" | "calendarDuration" => "datetime is not supported yet: use datenum and datestr",
        "string" | "strings" => "string objects are not supported yet: use char arrays, or a cell of them",
        "categorical" => "categorical arrays are not supported yet: use unique and its third output",
        _ => return None,
    })
}

/// Returns at most three known names that differ from `name` by a few typing errors, the closest first.
pub(super) fn closest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let allowed = 1 + name.chars().count() / 5;
    let mut close: Vec<(usize, &str)> = known
        .filter(|k| k.len().abs_diff(name.len()) <= allowed && *k != name)
        .map(|k| (strsim::damerau_levenshtein(&name.to_lowercase(), &k.to_lowercase()), k))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    close.sort();
    close.dedup();
    close.into_iter().take(3).map(|(_, k)| k).collect()
}
