//! How a run ends, including runs whose cleanup ends differently from the script.

use crate::error::ScriptError;

/// How a script ended.
#[derive(Debug, Default)]
pub enum End {
    /// Its last statement ended.
    #[default]
    Done,
    /// It called `exit (status)`.
    Exit {
        /// The status.
        status: i32,
        /// The error that was ending the script when its cleanup called `exit`.
        after: Option<Box<ScriptError>>,
    },
    /// An interrupt ended it.
    Interrupted,
    /// An error ended it that it did not catch.
    Failed(Box<ScriptError>),
}

impl End {
    /// Returns the end of a script whose last frame was left by this error, or by an interrupt if there is none.
    pub(super) fn by(error: Option<ScriptError>) -> End {
        error.map_or(End::Interrupted, |error| End::Failed(Box::new(error)))
    }

    /// Combines the script's end with the `later` end of its cleanup. An error is always reported, and an exit status
    /// stays. An interrupt stays if the cleanup ran to its end.
    pub(crate) fn then(self, later: End) -> End {
        match (self, later) {
            (end, End::Done) | (end @ (End::Failed(_) | End::Exit { .. }), End::Interrupted) => end,
            (End::Done | End::Interrupted, later) => later,
            (End::Failed(error), End::Exit { status, .. }) => End::Exit { status, after: Some(error) },
            (End::Failed(error), End::Failed(_)) => End::Failed(error),
            (End::Exit { status, after }, End::Exit { after: error, .. }) => {
                End::Exit { status, after: after.or(error) }
            }
            (End::Exit { status, after }, End::Failed(error)) => End::Exit { status, after: after.or(Some(error)) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::End;
    use crate::error::ScriptError;

    fn failed(words: &str) -> End {
        End::by(Some(ScriptError::new(words)))
    }

    fn exit(status: i32) -> End {
        End::Exit { status, after: None }
    }

    #[test]
    fn an_error_is_told_and_a_status_stands_whatever_cleans_up() {
        let told = |end: End| match end {
            End::Done => "done".to_string(),
            End::Interrupted => "interrupted".to_string(),
            End::Failed(error) => error.message,
            End::Exit { status, after } => format!("{status} {}", after.map_or(String::new(), |error| error.message)),
        };
        let cases = [
            (End::Done.then(exit(3)), "3 "),
            (failed("a").then(exit(3)), "3 a"),
            (failed("a").then(exit(3)).then(End::Interrupted), "3 a"),
            (failed("a").then(End::Interrupted), "a"),
            (failed("a").then(failed("b")), "a"),
            (exit(4).then(exit(5)), "4 "),
            (exit(4).then(failed("b")), "4 b"),
            (End::Interrupted.then(End::Done), "interrupted"),
            (End::Interrupted.then(exit(3)), "3 "),
            (End::Interrupted.then(failed("b")), "b"),
        ];
        for (end, expected) in cases {
            assert_eq!(told(end), expected);
        }
    }
}
