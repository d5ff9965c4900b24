//! Writes the table into a page of the documentation.

use crate::peer::Peer;
use crate::{Figures, shared};
use std::fmt::Write;
use tidemill::{Error, ErrorKind, Result};

/// Replaces the text between the marks of `section` in the page by the table. `rounds` is printed with it.
///
/// # Errors
/// `ErrorKind::Argument` if the page lacks the two marks, `ErrorKind::Io` if it cannot be read or written.
pub fn write(
    page: &str,
    section: &str,
    rounds: usize,
    device: &str,
    peers: &[Peer],
    results: &[Figures],
) -> Result<()> {
    let text = std::fs::read_to_string(page)?;
    let (begin, end) = (format!("<!-- peers {section}: begin -->\n"), format!("<!-- peers {section}: end -->"));
    let between = text.split_once(&begin).and_then(|(head, rest)| Some((head, rest.split_once(&end)?.1)));
    let Some((head, tail)) = between else {
        return Err(Error::new(ErrorKind::Argument, format!("{page} has no lines {begin:?} and {end:?}")));
    };
    std::fs::write(page, format!("{head}{begin}{}{end}{tail}", table(section, rounds, device, peers, results)))?;
    Ok(())
}

fn table(section: &str, rounds: usize, device: &str, peers: &[Peer], results: &[Figures]) -> String {
    let titles: Vec<String> = peers.iter().map(|peer| format!("{} (`{}`)", peer.title, peer.name)).collect();
    let date = peers.first().map_or("", |peer| peer.date.as_str());
    let mut page = String::new();
    let _ = writeln!(
        page,
        "\n{device}, {date}; `cargo bench --bench peers -- --device {section} --rounds {rounds}`; {}.\n",
        titles.join(", ")
    );
    page += "| workload | n | Tidemill, ms | fastest peer, ms | ratio | goal |\n|---|---|---|---|---|---|\n";
    for result in results {
        let mut times = result.ours.times_ms.clone();
        times.sort_by(f64::total_cmp);
        let at = |share| shared::quantile(&times, share).map_or("-".into(), digits);
        let best = result.best().map_or("-".into(), |(name, ms)| format!("{name} {}", digits(ms)));
        let ratio = result.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let (what, size, goal) = (result.row.what, result.size, result.row.goal);
        let _ = writeln!(
            page,
            "| {what} | {size} | {} ({} to {}) | {best} | {ratio} | {goal} |",
            at(0.5),
            at(0.1),
            at(0.9)
        );
    }
    page.push('\n');
    page
}

/// Formats a time with three significant digits.
fn digits(ms: f64) -> String {
    let places = (2 - ms.abs().max(1e-6).log10().floor() as i32).clamp(0, 4) as usize;
    format!("{ms:.places$}")
}
