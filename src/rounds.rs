//! How much work the tests of the workspace do. Each test has a short form; with `TIDEMILL_TESTS=all` in the environment
//! it takes its long form. `tests/README.md` lists both.

/// Returns `short`, or `long` with `TIDEMILL_TESTS=all` in the environment: how many rounds, seeds or sizes a test takes.
///
/// # Panics
/// If `TIDEMILL_TESTS` has any other value.
pub fn rounds<T>(short: T, long: T) -> T {
    match std::env::var("TIDEMILL_TESTS").as_deref() {
        Err(_) | Ok("") => short,
        Ok("all") => long,
        Ok(other) => panic!("TIDEMILL_TESTS={other}: it is `all`, or is not set"),
    }
}
