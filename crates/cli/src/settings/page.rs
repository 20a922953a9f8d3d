//! Keeps `docs/reference/settings.md` in step with the settings: its tables are made from the same list.

use serde_json::Value;
use std::fmt::Write;

use super::table::{Section, settings};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/settings.md");

fn table(section: Section) -> String {
    let mut text = String::from("\n\n| setting | default | meaning |\n|---|---|---|\n");
    for setting in settings().iter().filter(|setting| setting.section == section) {
        let default = match &setting.default {
            Value::Null => "not set".to_owned(),
            Value::Array(values) if values.is_empty() => "none".to_owned(),
            other => format!("`{other}`"),
        };
        let _infallible = writeln!(text, "| `{}` | {default} | {} |", setting.name, setting.help);
    }
    text.push('\n');
    text
}

/// The page with what stands between its marks made anew.
fn refreshed(page: &str) -> String {
    let mut page = page.to_owned();
    for section in Section::ALL {
        let (begin, end) = (format!("<!-- {section}: begin -->"), format!("<!-- {section}: end -->"));
        let from = page.find(&begin).unwrap_or_else(|| panic!("the page lacks {begin}")) + begin.len();
        let to = page.find(&end).unwrap_or_else(|| panic!("the page lacks {end}"));
        page.replace_range(from..to, &table(section));
    }
    page
}

#[test]
fn the_settings_page_lists_every_setting_with_its_default() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let fresh = refreshed(&page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, &fresh).unwrap();
    } else {
        assert!(
            page == fresh,
            "docs/reference/settings.md is stale; refresh it: UPDATE_DOCS=1 cargo test -p rollyard settings_page"
        );
    }
}
