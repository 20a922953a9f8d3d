//! Says where the built page is, and builds this crate again when there is a new one.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where the crate is");
    let root = Path::new(&here).join("../..").canonicalize().expect("the crate lies in the repository");
    let page = root.join("web/dist");
    println!("cargo::rustc-env=ROLLYARD_PAGE={}", page.display());
    // Cargo takes what is missing for changed, and would build this crate again each time. Without Node the folder
    // stays empty, which is a build without the page; where it cannot be made, only time is lost.
    let _ = std::fs::create_dir_all(&page);
    println!("cargo::rerun-if-changed={}", page.display());
}
