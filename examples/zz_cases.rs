use parking_lot::Mutex;
use std::sync::Arc;
use tidemill::Runtime;
use tidemill::script::Script;
use tidemill::script::env::Options;
use tidemill::script::output::Captured;
fn print_of(rt: &Runtime, code: &str, host_elements_max: usize) -> String {
    let session = rt.session("case").seed(1).open();
    let captured = Arc::new(Mutex::new(Captured::default()));
    let script = match Script::parse(code) {
        Ok(script) => script,
        Err(error) => return format!("error: {}\n", error.message),
    };
    let options = Options { host_elements_max, ..Options::default() };
    let result = futures::executor::block_on(script.run_with(&session, Box::new(captured.clone()), options));
    match result {
        Ok(_) => {
            let mut out = String::from_utf8_lossy(&captured.lock().out).into_owned();
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            out
        }
        Err(error) => format!("error: {}\n", error.message),
    }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let rt = Runtime::builder().device(&args[1]).start_blocking().unwrap();
    let max: usize = if args[2] == "d" { Options::default().host_elements_max } else { args[2].parse().unwrap() };
    let text = std::fs::read_to_string(&args[3]).unwrap();
    let mut out = String::new();
    for line in text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('%')) {
        let t = std::time::Instant::now();
        let p = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| print_of(&rt, line, max)))
            .unwrap_or_else(|_| "PANIC\n".into());
        if t.elapsed().as_secs_f64() > 5.0 {
            eprintln!("slow {:?}: {line}", t.elapsed());
        }
        out.push_str(&format!(">>> {line}\n{p}"));
        std::fs::write(&args[4], &out).unwrap();
    }
}
