//! The catalog says what the files say, however they change.

use rollyard_store::catalog::{Catalog, Progress, RolloutId, RowNo};
use rollyard_store::places::{Places, Roots};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub(crate) struct Yard {
    pub(crate) dir: tempfile::TempDir,
}

impl Yard {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("runs")).unwrap();
        Self { dir }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join("runs").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.file(name), content).unwrap();
    }

    pub(crate) fn append(&self, name: &str, content: impl AsRef<[u8]>) {
        use std::io::Write;
        let mut file = fs::OpenOptions::new().append(true).create(true).open(self.file(name)).unwrap();
        file.write_all(content.as_ref()).unwrap();
    }

    pub(crate) fn catalog(&self) -> Catalog {
        self.catalog_in("cache")
    }

    pub(crate) fn catalog_in(&self, cache: &str) -> Catalog {
        let specs = [self.dir.path().join("runs").to_string_lossy().into_owned()];
        Catalog::open(Places::new(Roots::Anywhere), &specs, &self.dir.path().join(cache)).unwrap()
    }

    pub(crate) fn refreshed(&self) -> Catalog {
        let catalog = self.catalog();
        refresh(&catalog);
        catalog
    }
}

pub(crate) fn refresh(catalog: &Catalog) -> Progress {
    catalog.refresh(&|_| {}, &AtomicBool::new(false)).unwrap()
}

pub(crate) fn row(n: usize) -> String {
    format!(
        "{{\"messages\": [{{\"role\": \"user\", \"content\": \"What is {n}?\"}}, {{\"role\": \"assistant\", \"content\": \
         \"<think>hm</think>\\nIt is {n}.\"}}], \"attributes\": {{\"step\": {}, \"reward\": {}.5, \"rollout_n\": {n}}}, \
         \"timestamp\": \"2026-01-16T11:33:10.5\"}}",
        n / 10,
        n % 3
    )
}

fn rows(range: std::ops::Range<usize>) -> String {
    range.map(|n| row(n) + "\n").collect()
}

/// Every row as it is in the catalog, with its bytes; independent of row numbers.
pub(crate) fn all(catalog: &Catalog) -> Vec<String> {
    let connection = catalog.connect().unwrap();
    let mut select = connection
        .prepare("SELECT source_file, line, id, bad, step, reward, status, body, problem, extra FROM all_rows")
        .unwrap();
    let mut all: Vec<String> = select
        .query_map([], |row| {
            Ok((0..10).map(|at| format!("{:?}|", row.get_ref(at).unwrap())).collect::<String>())
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    all.sort();
    all
}

fn count(catalog: &Catalog, sql: &str) -> i64 {
    catalog.connect().unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn rows_are_found_with_their_bytes_in_the_order_of_their_file() {
    let yard = Yard::new();
    yard.write("a.jsonl", rows(0..100));
    yard.write("b.jsonl", rows(100..150));
    let catalog = yard.catalog();
    let progress = refresh(&catalog);
    assert_eq!((progress.rows, progress.files_done, progress.files, progress.bad_rows), (150, 2, 2, 0));
    assert_eq!(progress.bytes_done, progress.bytes);
    for n in 0..150 {
        let body = catalog.body(RowNo(n as i64 + 1)).unwrap();
        assert_eq!(body.raw, row(n).as_bytes());
        assert_eq!(body.line as usize, if n < 100 { n + 1 } else { n - 99 });
    }
    let id: String =
        catalog.connect().unwrap().query_row("SELECT id FROM rollouts WHERE rollout_n = 7", [], |row| row.get(0)).unwrap();
    let id = RolloutId(u128::from_str_radix(&id, 16).unwrap());
    assert_eq!(catalog.find(id).unwrap(), Some(RowNo(8)));
    assert_eq!(catalog.find(RolloutId(1)).unwrap(), None);
    assert!(catalog.body(RowNo(151)).unwrap_err().to_string().contains("no row 151"));
}

#[test]
fn a_connection_reads_bodies_and_cannot_write() {
    let yard = Yard::new();
    yard.write("a.jsonl", rows(0..3));
    let catalog = yard.refreshed();
    let connection = catalog.connect().unwrap();
    let (prompt, response, message): (String, String, String) = connection
        .query_row("SELECT prompt, response, message(row, 0) FROM rollouts WHERE rollout_n = 2", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    assert_eq!((prompt.as_str(), message.as_str()), ("What is 2?", "What is 2?"));
    assert_eq!(response, "<think>hm</think>\n\nIt is 2.");
    for sql in ["DELETE FROM rows", "CREATE TABLE x (y)", "CREATE TEMP TABLE x (y)"] {
        assert!(connection.execute(sql, []).is_err(), "{sql}");
    }
    // What is not asked for is not read: the file is gone, and only the body needs it.
    fs::remove_file(yard.file("a.jsonl")).unwrap();
    let fresh = yard.catalog();
    assert_eq!(count(&fresh, "SELECT count(*) FROM rollouts WHERE step = 0 AND source_file LIKE '%a.jsonl'"), 3);
    assert!(fresh.connect().unwrap().query_row("SELECT body FROM rollouts", [], |_| Ok(())).is_err());
}

#[test]
fn what_changed_is_read_again_and_what_grew_is_read_on() {
    type Change = (&'static str, fn(&Yard));
    let changes: [Change; 8] = [
        ("appended", |yard| yard.append("a.jsonl", rows(50..60))),
        ("truncated", |yard| yard.write("a.jsonl", rows(0..10))),
        ("replaced by another of the same size", |yard| {
            yard.write("a.jsonl", rows(0..50).replace("What is", "what is"));
        }),
        ("replaced by a longer one", |yard| yard.write("a.jsonl", rows(20..90))),
        ("a file came", |yard| yard.write("c.jsonl", rows(200..210))),
        ("a file went", |yard| fs::remove_file(yard.file("a.jsonl")).unwrap()),
        ("a file is empty now", |yard| yard.write("a.jsonl", "")),
        ("nothing", |_| {}),
    ];
    for (name, change) in changes {
        let yard = Yard::new();
        yard.write("a.jsonl", rows(0..50));
        yard.write("b.jsonl", rows(40..55));
        let catalog = yard.refreshed();
        change(&yard);
        let progress = refresh(&catalog);
        let fresh = yard.catalog_in("fresh");
        assert_eq!(refresh(&fresh).rows, progress.rows, "{name}");
        assert_eq!(all(&catalog), all(&fresh), "{name}");
        let rollouts = "SELECT count(*) FROM rollouts";
        assert_eq!(count(&catalog, rollouts), count(&fresh, rollouts), "{name}");
        assert_eq!(count(&catalog, rollouts), count(&fresh, "SELECT count(DISTINCT id) FROM all_rows"), "{name}");
        let is_only_added = matches!(name, "appended" | "a file came" | "nothing");
        let revision = count(&catalog, "SELECT value FROM facts WHERE name = 'revision'");
        assert_eq!(revision == 0, is_only_added, "{name}");
    }
}

#[test]
fn a_last_line_is_a_row_when_it_is_whole_and_waits_when_it_is_not() {
    let yard = Yard::new();
    yard.write("a.jsonl", rows(0..2) + &row(2));
    let catalog = yard.refreshed();
    assert_eq!(count(&catalog, "SELECT count(*) FROM rollouts"), 3);
    let next = row(3);
    let (front, back) = next.split_at(50);
    yard.append("a.jsonl", format!("\n{front}"));
    assert_eq!(refresh(&catalog).rows, 3);
    assert_eq!(catalog.health().unwrap().half_written, 1);
    yard.append("a.jsonl", back);
    assert_eq!(refresh(&catalog).rows, 4);
    let health = catalog.health().unwrap();
    assert_eq!((health.half_written, health.bad_rows), (0, 0));
    assert_eq!(count(&catalog, "SELECT line FROM rollouts WHERE rollout_n = 3"), 4);
    assert_eq!(count(&catalog, "SELECT value FROM facts WHERE name = 'revision'"), 0);

    // Nobody writes on: then it is a bad row like any other, and shown raw.
    yard.append("a.jsonl", "\n{\"messages\": [");
    refresh(&catalog);
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    fs::File::options().append(true).open(yard.file("a.jsonl")).unwrap().set_modified(long_ago).unwrap();
    refresh(&catalog);
    let health = catalog.health().unwrap();
    assert_eq!((health.half_written, health.bad_rows, health.rows), (0, 1, 5));
    assert_eq!(catalog.body(RowNo(5)).unwrap().raw, "{\"messages\": [".as_bytes());
    yard.append("a.jsonl", "]}\n");
    refresh(&catalog);
    let health = catalog.health().unwrap();
    assert_eq!((health.bad_rows, health.rows), (0, 5));
}

pub(crate) fn cache_of(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
}
