//! Places on a disk: what is found, what is refused, and what is said about it.

use bytes::Bytes;
use rollyard_store::places::{Depth, PlaceError, Places, Roots};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with files, each of which holds its own name.
struct Tree {
    _folder: TempDir,
    root: PathBuf,
}

impl Tree {
    fn with(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in files {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), name).unwrap();
        }
        Self { _folder: folder, root }
    }

    fn at(&self, name: &str) -> String {
        self.root.join(name).to_str().unwrap().to_owned()
    }

    /// The names below the root of what a place stands for.
    fn names(&self, places: &Places, place: &str) -> Result<Vec<String>, PlaceError> {
        let below = |url: &String| url.strip_prefix(self.root.to_str().unwrap()).unwrap()[1..].to_owned();
        Ok(places.files(&self.at(place))?.iter().map(|file| below(&file.url)).collect())
    }
}

fn anywhere() -> Places {
    Places::new(Roots::Anywhere)
}

#[test]
fn a_place_stands_for_its_files() {
    let tree = Tree::with(&[
        "runs/a/step_1.jsonl",
        "runs/a/step_2.jsonl",
        "runs/b/step_1.ndjson",
        "runs/b/deep/x.parquet",
        "runs/b/notes.txt",
        "runs/b/.hidden.jsonl",
        "runs/.cache/y.jsonl",
        "runs/b/half.jsonl.tmp",
        "runs/odd[1].json",
    ]);
    let all = [
        "runs/a/step_1.jsonl",
        "runs/a/step_2.jsonl",
        "runs/b/deep/x.parquet",
        "runs/b/step_1.ndjson",
        "runs/odd[1].json",
    ];
    let cases: [(&str, &[&str]); 9] = [
        ("runs", &all),
        ("runs/", &all),
        ("runs/a/step_1.jsonl", &all[..1]),
        ("runs/b/notes.txt", &["runs/b/notes.txt"]),
        ("runs/*/step_*", &[all[0], all[1], all[3]]),
        ("runs/**/*.parquet", &[all[2]]),
        (
            "runs/**",
            &[
                "runs/a/step_1.jsonl",
                "runs/a/step_2.jsonl",
                "runs/b/deep/x.parquet",
                "runs/b/notes.txt",
                "runs/b/step_1.ndjson",
                "runs/odd[1].json",
            ],
        ),
        ("runs/odd[1].json", &[all[4]]),
        ("runs/a/../b/step_1.ndjson", &[all[3]]),
    ];
    for (place, names) in cases {
        assert_eq!(tree.names(&anywhere(), place).unwrap(), names, "{place}");
    }
    let by_url = anywhere().files(&format!("file://{}", tree.at("runs/odd%5B1%5D.json"))).unwrap();
    assert_eq!(by_url, anywhere().files(&tree.at("runs/odd[1].json")).unwrap());
}

#[test]
fn one_level_shows_folders_beside_files() {
    let tree =
        Tree::with(&["runs/a.jsonl", "runs/b/c.jsonl", "runs/empty/notes.txt", "runs/.git/config.json"]);
    let listing = anywhere().browse(&tree.at("runs"), Depth::One).unwrap();
    assert_eq!(listing.folders, [tree.at("runs/b") + "/", tree.at("runs/empty") + "/"]);
    assert_eq!(
        listing.files.iter().map(|file| file.url.as_str()).collect::<Vec<_>>(),
        [tree.at("runs/a.jsonl")]
    );
    let below = anywhere().browse(&tree.at("runs"), Depth::All).unwrap();
    assert_eq!((below.folders.len(), below.files.len()), (0, 2));
    assert_eq!(anywhere().browse(&tree.at("runs/empty"), Depth::All).unwrap().files, []);
}

#[test]
fn links_are_followed_once_and_name_the_real_file() {
    let tree = Tree::with(&["runs/step_1/a.jsonl", "elsewhere/b.jsonl"]);
    symlink("step_1", tree.at("runs/latest")).unwrap();
    symlink("..", tree.at("runs/step_1/up")).unwrap();
    symlink(tree.at("elsewhere"), tree.at("runs/linked")).unwrap();
    symlink(tree.at("gone"), tree.at("runs/broken.jsonl")).unwrap();
    let cases: [(&str, &[&str]); 3] = [
        ("runs", &["elsewhere/b.jsonl", "runs/step_1/a.jsonl"]),
        ("runs/lat*/*.jsonl", &["runs/step_1/a.jsonl"]),
        ("runs/latest/a.jsonl", &["runs/step_1/a.jsonl"]),
    ];
    for (place, names) in cases {
        assert_eq!(tree.names(&anywhere(), place).unwrap(), names, "{place}");
    }
}

#[test]
fn what_cannot_be_read_is_told_with_what_there_is() {
    let tree = Tree::with(&["runs/a.jsonl", "notes/b.txt"]);
    symlink("nowhere", tree.at("runs/broken.jsonl")).unwrap();
    std::fs::create_dir(tree.at("void")).unwrap();
    let cases = [
        ("runs/b.jsonl", "not_found", "in the folder there are: a.jsonl, broken.jsonl"),
        ("runs/c/d.jsonl", "not_found", "in the folder there are: a.jsonl"),
        ("runs/a.jsonl/b", "not_found", "there is nothing under this name"),
        ("runs/broken.jsonl", "not_found", "a link to nowhere, which is not there"),
        ("runs/*.parquet", "not_found", "the glob matches no file"),
        ("runs/[", "not_a_place", "the glob cannot be read"),
        ("notes", "no_rollouts", "in the folder there are: b.txt"),
        ("void", "no_rollouts", "the folder is empty"),
    ];
    for (place, code, said) in cases {
        let error = anywhere().files(&tree.at(place)).unwrap_err();
        assert!(error.code() == code && error.to_string().contains(said), "{place}: {error}");
        assert!(error.to_string().ends_with(&tree.at(place)), "{place}: {error}");
    }
    for folder in
        [anywhere().look(&tree.at("runs")).unwrap_err(), anywhere().open(&tree.at("runs")).unwrap_err()]
    {
        assert!(folder.to_string().starts_with("this is a folder"), "{folder}");
    }
}

#[test]
fn nothing_outside_of_the_roots_is_read_listed_or_written() {
    let tree = Tree::with(&["open/a.jsonl", "open/sub/b.jsonl", "open-not/c.jsonl", "secret/d.jsonl"]);
    symlink(tree.at("secret"), tree.at("open/out")).unwrap();
    symlink(tree.at("secret/d.jsonl"), tree.at("open/d.jsonl")).unwrap();
    symlink("sub", tree.at("open/in")).unwrap();
    let places = Places::new(Roots::Only(vec![tree.at("open"), "s3://bucket/prefix".to_owned()]));
    assert_eq!(tree.names(&places, "open").unwrap(), ["open/a.jsonl", "open/sub/b.jsonl"]);
    assert_eq!(tree.names(&places, "open/in/*").unwrap(), ["open/sub/b.jsonl"]);
    assert!(places.create(&tree.at("open/new/e.jsonl")).unwrap().finish().is_ok());
    let refused = [
        tree.at("open/../secret/d.jsonl"),
        tree.at("open/sub/../a.jsonl"),
        tree.at("open/%2e%2e/secret/d.jsonl"),
        tree.at("open/%252e%252e/secret/d.jsonl"),
        format!("file://{}", tree.at("open/%2e%2e/secret/d.jsonl")),
        format!("file://{}", tree.at("open/..%2fsecret/d.jsonl")),
        tree.at("open/out/d.jsonl"),
        tree.at("open/out"),
        tree.at("open/out/*.jsonl"),
        tree.at("open/d.jsonl"),
        tree.at("open-not/c.jsonl"),
        tree.at("open*/c.jsonl"),
        tree.at("secret/missing.jsonl"),
        tree.at(""),
        "/etc/passwd".to_owned(),
        "s3://bucket/prefix-other/a.jsonl".to_owned(),
        "s3://other/prefix/a.jsonl".to_owned(),
        "gs://bucket/prefix/a.jsonl".to_owned(),
    ];
    for place in &refused {
        let errors = [
            places.files(place).map(drop),
            places.browse(place, Depth::One).map(drop),
            places.look(place).map(drop),
            places.open(place).map(drop),
        ];
        for result in errors {
            assert_eq!(result.unwrap_err().code(), "not_allowed", "{place}");
        }
        // A link in the last place would be replaced, not followed.
        if !place.ends_with("open/d.jsonl") && !place.ends_with("open/out") {
            assert_eq!(places.create(place).map(drop).unwrap_err().code(), "not_allowed", "{place}");
        }
        assert_eq!(
            places.local_path(place).filter(|path| !path.starts_with(tree.at("open"))),
            None,
            "{place}"
        );
    }
    assert_eq!(places.files(&tree.at("open/a\0")).unwrap_err().code(), "not_a_place");
    assert!(!Path::new(&tree.at("secret/new.jsonl")).exists());
}

#[test]
fn a_file_appears_as_a_whole_or_not_at_all() {
    let tree = Tree::with(&["keep.jsonl"]);
    let url = tree.at("new/folder/a.jsonl");
    let mut upload = anywhere().create(&url).unwrap();
    upload.write(Bytes::from_static(b"hello ")).unwrap();
    upload.write(Bytes::from_static(b"yard")).unwrap();
    assert!(!Path::new(&url).exists());
    let info = upload.finish().unwrap();
    assert_eq!((info.url.as_str(), info.size_bytes), (url.as_str(), 10));
    assert_eq!(anywhere().look(&url).unwrap(), info);

    for abort in [true, false] {
        let mut upload = anywhere().create(&url).unwrap();
        upload.write(Bytes::from_static(b"other")).unwrap();
        if abort {
            upload.abort()
        } else {
            drop(upload)
        }
        let left: Vec<_> = std::fs::read_dir(tree.at("new/folder")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
    assert_eq!(std::fs::read(&url).unwrap(), b"hello yard");
    assert_eq!(anywhere().create(&tree.at("new")).unwrap_err().code(), "not_a_place");
    let replaced = anywhere().create(&url).unwrap().finish().unwrap();
    assert_ne!(replaced.stamp, info.stamp);
}

#[test]
fn any_range_of_a_file_can_be_read() {
    let tree = Tree::with(&["a.jsonl"]);
    std::fs::write(tree.at("a.jsonl"), "0123456789").unwrap();
    let file = anywhere().open(&tree.at("a.jsonl")).unwrap();
    assert_eq!(file.size_bytes(), 10);
    for (range, text) in
        [(0..4, "0123"), (8..100, "89"), (10..20, ""), (50..60, ""), (5..5, ""), (7..u64::MAX, "789")]
    {
        assert_eq!(file.read_at(range.clone()).unwrap(), text, "{range:?}");
    }
}
