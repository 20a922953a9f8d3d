//! Says where the built page is, and builds this crate again when there is a new one.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where the crate is");
    let root = Path::new(&here).join("../..").canonicalize().expect("the crate lies in the repository");
    let page = root.join("web/dist");
    println!("cargo::rustc-env=ROLLYARD_PAGE={}", page.display());
    // A debug build reads the page from disk whenever it is asked for: there is nothing to embed.
    if std::env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_none() {
        println!("cargo::rerun-if-changed={}", page.display());
    }
}
