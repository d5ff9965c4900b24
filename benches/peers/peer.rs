//! A peer: a process of Python that imports one library, waits for the name of a row, and measures it.

use crate::Measured;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// One library in a process of its own.
pub struct Peer {
    pub name: String,
    /// The name with its version.
    pub title: String,
    /// The date on which the peer was started, by its own clock.
    pub date: String,
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peer {
    /// The peers that can be imported on this machine: those for a GPU, or those for the CPU.
    pub fn all(python: &str, is_host: bool) -> Vec<Peer> {
        let names: &[&str] = if is_host { &["numpy", "jax"] } else { &["torch", "compile", "jax", "cupy"] };
        names.iter().filter_map(|name| Peer::start(python, name, is_host)).collect()
    }

    fn start(python: &str, name: &str, is_host: bool) -> Option<Peer> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/peers.py");
        // The script is in the source tree. If the program was copied to another machine, it is looked for relative to
        // the current folder.
        let script = if std::path::Path::new(script).exists() { script } else { "benches/peers/peers.py" };
        let mut child = Command::new(python)
            .args([script, name, if is_host { "cpu" } else { "gpu" }])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let (to, from) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        let mut peer = Peer { name: name.into(), title: name.into(), date: String::new(), child, to, from };
        let hello = peer.line()?;
        peer.title = hello["title"].as_str()?.into();
        peer.date = hello["date"].as_str()?.into();
        Some(peer)
    }

    /// Measures one round of a row. `None` if the peer has no program for it, or failed.
    pub fn ask(&mut self, row: &str, size: usize) -> Option<Measured> {
        writeln!(self.to, "{row} {size}").ok()?;
        self.to.flush().ok()?;
        let reply = self.line()?;
        if let Some(error) = reply["error"].as_str() {
            eprintln!("{} {row} {size}: {error}", self.name);
        }
        let times = reply["times_ms"].as_array()?;
        Some(Measured {
            times_ms: times.iter().filter_map(Value::as_f64).collect(),
            check: reply["check"].as_f64().unwrap_or(f64::NAN),
        })
    }

    /// Reads the next line that is JSON. Libraries print other lines, too.
    fn line(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Ok(value) = serde_json::from_str::<Value>(&line)
                && value.is_object()
            {
                return Some(value);
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
