//! Names that are close to one that nobody knows.

/// The known names that a slip of the finger away from `name`, closest first; at most three.
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
