//! Sinks for a script's output.

/// A sink of a script's standard output and of its warnings. Errors that end a script are returned, not written here.
pub trait Output: Send {
    /// Bytes of standard output, as the script printed them; not necessarily whole lines.
    fn out(&mut self, bytes: &[u8]);
    /// Bytes of standard error: warnings, `fprintf(2, …)`.
    fn err(&mut self, bytes: &[u8]);
    /// Passes on what is buffered.
    fn flush(&mut self) {}
    /// The bytes that the sink keeps in memory. A script that prints more than the machine has memory for gets an
    /// error.
    fn held_bytes(&self) -> usize {
        0
    }
    /// Whether the sink has lost its reader (a closed pipe); the script should then end quietly.
    fn closed(&self) -> bool {
        false
    }
}

/// Keeps what is printed, for embedding and tests.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
}

impl Output for Captured {
    fn out(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }
    fn err(&mut self, bytes: &[u8]) {
        self.err.extend_from_slice(bytes);
    }
    fn held_bytes(&self) -> usize {
        self.out.len() + self.err.len()
    }
}

/// Keeps both streams as one text, in the order in which they were written (`evalc`).
pub struct Together(pub std::sync::Arc<parking_lot::Mutex<Captured>>);

impl Output for Together {
    fn out(&mut self, bytes: &[u8]) {
        self.0.lock().out(bytes);
    }
    fn err(&mut self, bytes: &[u8]) {
        self.0.lock().out(bytes);
    }
    fn held_bytes(&self) -> usize {
        self.0.lock().held_bytes()
    }
}

/// A sink with several owners, so that the output can be read afterwards.
impl<T: Output> Output for std::sync::Arc<parking_lot::Mutex<T>> {
    fn out(&mut self, bytes: &[u8]) {
        self.lock().out(bytes);
    }
    fn err(&mut self, bytes: &[u8]) {
        self.lock().err(bytes);
    }
    fn flush(&mut self) {
        self.lock().flush();
    }
    fn held_bytes(&self) -> usize {
        self.lock().held_bytes()
    }
    fn closed(&self) -> bool {
        self.lock().closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_stand_together_in_the_order_in_which_they_were_written() {
        let kept = std::sync::Arc::new(parking_lot::Mutex::new(Captured::default()));
        let mut both = Together(kept.clone());
        both.out(b"a");
        both.err(b"b");
        both.out(b"c");
        assert_eq!(kept.lock().out, b"abc");
        assert!(kept.lock().err.is_empty());
    }
}
