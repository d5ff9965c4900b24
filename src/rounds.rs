//! How much the tests of the workspace do: a short form each, or, with `TIDEMILL_TESTS=all` in the environment, the long
//! one. `tests/README.md` lists what differs.

/// The first value, or with `TIDEMILL_TESTS=all` the second: how many rounds, seeds or sizes a test takes.
pub fn rounds<T>(short: T, long: T) -> T {
    match std::env::var("TIDEMILL_TESTS").as_deref() {
        Err(_) | Ok("") => short,
        Ok("all") => long,
        Ok(other) => panic!("TIDEMILL_TESTS={other}: it is `all`, or is not set"),
    }
}
