//! Writes numbers as quotients, as `format rat` and `rats` do.
//!
//! In: a number, and the number of places. Out: the last convergent of the number's continued fraction, each term
//! rounded to the nearest integer, that fits with its denominator (even if that is 1 and not written) into one place
//! less than given; the sign does not count. The result is `*` if not even the integer part fits, and for small numbers
//! that would be shown as zero. Without a limit a quotient has ten places, and an integer as many as it needs.

/// The places of a quotient without a limit.
const PLACES_FREE: usize = 10;

/// Returns a number as a quotient; `places` is 0 for no limit.
pub fn text(x: f64, places: usize) -> String {
    if x == 0.0 {
        return "0".into();
    }
    if !x.is_finite() {
        let text = if x.is_nan() { "0/0" } else { "1/0" };
        return if x < 0.0 { format!("-{text}") } else { text.into() };
    }
    let room = if places == 0 { PLACES_FREE } else { places.saturating_sub(1) };
    let Some((above, below)) = quotient(x.abs(), room, places == 0) else { return "*".into() };
    let sign = if x < 0.0 { "-" } else { "" };
    match (above == 0.0, below == 1.0) {
        (true, _) => "*".into(),
        (false, true) => format!("{sign}{above:.0}"),
        (false, false) => format!("{sign}{above:.0}/{below:.0}"),
    }
}

/// Returns the last convergent of a positive number that fits.
fn quotient(x: f64, room: usize, free: bool) -> Option<(f64, f64)> {
    const MOST: f64 = i32::MAX as f64;
    let has_room = |above: f64, below: f64| format!("{above:.0}/{below:.0}").len() <= room;
    let (mut before, mut last) = ((1.0, 0.0), (x.round(), 1.0));
    if !free && !has_room(last.0, last.1) {
        return None;
    }
    let mut rest = x - last.0;
    loop {
        let flipped = 1.0 / rest;
        // The remainder is only a rounding error.
        if flipped.abs() > MOST {
            return Some((last.0.abs(), last.1.abs()));
        }
        let term = flipped.round();
        let next = (term * last.0 + before.0, term * last.1 + before.1);
        if next.0.abs() > MOST || next.1.abs() > MOST || !has_room(next.0.abs(), next.1.abs()) {
            return Some((last.0.abs(), last.1.abs()));
        }
        rest = flipped - term;
        (before, last) = (last, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_take_the_room_they_have() {
        let pi = std::f64::consts::PI;
        for (x, places, expected) in [
            (pi, 9, "355/113"),
            (-pi, 9, "-355/113"),
            (pi, 20, "817696623/260280919"),
            (123456.789, 9, "617284/5"),
            (123456.789, 0, "2345679/19"),
            (999999.0, 9, "999999"),
            (1e6, 9, "*"),
            (1e6, 0, "1000000"),
            (500000.5, 9, "500001"),
            (1e-10, 0, "*"),
            (1e-5, 9, "1/100000"),
            (-1.0 / 123456.0, 9, "-1/123456"),
            (0.0, 9, "0"),
            (f64::NAN, 9, "0/0"),
            (f64::NEG_INFINITY, 9, "-1/0"),
        ] {
            assert_eq!(text(x, places), expected, "{x} in {places}");
        }
    }
}
