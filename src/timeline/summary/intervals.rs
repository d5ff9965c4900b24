//! Arithmetic of spans of time: unions, lengths and intersections of half-open intervals in nanoseconds.

/// The time that at least one interval covers, as sorted intervals that do not touch.
pub(super) fn union(mut intervals: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    intervals.retain(|(start, end)| start < end);
    intervals.sort_unstable();
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (start, end) in intervals {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// The length of a union.
pub(super) fn length_ns(union: &[(i64, i64)]) -> u64 {
    union.iter().map(|(start, end)| (end - start) as u64).sum()
}

/// The length of what two unions have in common.
pub(super) fn intersection_ns(a: &[(i64, i64)], b: &[(i64, i64)]) -> u64 {
    let (mut i, mut j, mut total) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (start, end) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        total += (end - start).max(0) as u64;
        if a[i].1 < b[j].1 { i += 1 } else { j += 1 }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_joins_what_touches_and_drops_what_is_empty() {
        assert_eq!(union(vec![(5, 7), (0, 3), (3, 4), (6, 9), (20, 20)]), [(0, 4), (5, 9)]);
    }

    #[test]
    fn an_intersection_counts_common_time_once() {
        assert_eq!(intersection_ns(&[(0, 10), (20, 30)], &[(5, 22), (25, 26), (29, 40)]), 5 + 2 + 1 + 1);
        assert_eq!(intersection_ns(&[(0, 10)], &[(10, 20)]), 0);
    }
}
