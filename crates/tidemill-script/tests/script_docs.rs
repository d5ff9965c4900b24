//! `docs/matlab.md` lists the functions that the tables hold. `TIDEMILL_UPDATE=1 cargo test --test script_docs`
//! rewrites it.

use tidemill_script::testing::markdown;

const MARK: &str =
    "<!-- What follows is written by crates/tidemill-script/tests/script_docs.rs from the tables. -->\n\n";

#[test]
fn the_page_lists_the_functions_of_the_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/matlab.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, tables) = page.split_once(MARK).expect("the page has its mark");
    if std::env::var_os("TIDEMILL_UPDATE").is_some() {
        std::fs::write(path, format!("{head}{MARK}{}", markdown())).unwrap();
        return;
    }
    assert!(
        tables == markdown(),
        "docs/matlab.md is older than the tables: TIDEMILL_UPDATE=1 cargo test --test script_docs"
    );
}
