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
        .prepare(
            "SELECT source_file, line, id, bad, step, reward, status, body, problem, extra, dead_group, length_ratio
             FROM all_rows",
        )
        .unwrap();
    let mut all: Vec<String> = select
        .query_map([], |row| {
            Ok((0..12).map(|at| format!("{:?}|", row.get_ref(at).unwrap())).collect::<String>())
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
    let id: String = catalog
        .connect()
        .unwrap()
        .query_row("SELECT id FROM rollouts WHERE rollout_n = 7", [], |row| row.get(0))
        .unwrap();
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
    assert_eq!(
        count(&fresh, "SELECT count(*) FROM rollouts WHERE step = 0 AND source_file LIKE '%a.jsonl'"),
        3
    );
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
        assert_eq!(
            count(&catalog, rollouts),
            count(&fresh, "SELECT count(DISTINCT id) FROM all_rows"),
            "{name}"
        );
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

#[test]
fn a_rollout_that_is_there_twice_is_one_and_outlives_its_first_file() {
    let yard = Yard::new();
    yard.write("a.jsonl", rows(0..10));
    // As another program would write it: no spaces, keys in another order, other escapes.
    let value: serde_json::Value = serde_json::from_str(&row(3)).unwrap();
    let other = value.to_string().replace("What", "\\u0057hat").replace(".5\"", ".5\" ");
    let graded = row(4).replacen('{', "{\"grades\": {\"x\": [1]}, ", 1);
    yard.write("b.jsonl", format!("{}\n{graded}\n", other.replace(".5\" ", ".5\"")));
    let catalog = yard.refreshed();
    let health = catalog.health().unwrap();
    assert_eq!((health.rows, health.copies), (12, 2));
    assert_eq!(count(&catalog, "SELECT count(*) FROM rollouts"), 10);
    fs::remove_file(yard.file("a.jsonl")).unwrap();
    refresh(&catalog);
    assert_eq!(count(&catalog, "SELECT count(*) FROM rollouts"), 2);
}

#[test]
fn ids_are_the_same_in_every_form_of_the_file() {
    let ids = |catalog: &Catalog| -> Vec<String> {
        let connection = catalog.connect().unwrap();
        let mut select = connection.prepare("SELECT id FROM rollouts ORDER BY rollout_n").unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let lines = Yard::new();
    lines.write("a.jsonl", rows(0..300));
    let expected = ids(&lines.refreshed());
    assert_eq!(expected.len(), 300);

    let shards = Yard::new();
    shards.write("1.jsonl", rows(150..300));
    shards.write("2.jsonl", rows(0..150).replace('\n', "\r\n\n"));
    assert_eq!(ids(&shards.refreshed()), expected);

    let list = Yard::new();
    let items: Vec<_> = (0..300).map(row).collect();
    list.write("a.json", format!("[{}]", items.join(",\n  ")));
    assert_eq!(ids(&list.refreshed()), expected);

    let table = Yard::new();
    write_records(&table.file("a.parquet"), &items);
    let catalog = table.refreshed();
    assert_eq!(ids(&catalog), expected);
    for at in [0, 63, 64, 299, 5] {
        assert_eq!(catalog.body(RowNo(at as i64 + 1)).unwrap().raw, items[at].as_bytes());
    }
}

fn write_records(path: &Path, items: &[String]) {
    use arrow_array::{RecordBatch, StringArray};
    use arrow_schema::{DataType, Field, Schema};
    use std::sync::Arc;
    let schema = Arc::new(Schema::new(vec![Field::new("record", DataType::Utf8, false)]));
    let properties =
        parquet::file::properties::WriterProperties::builder().set_max_row_group_row_count(Some(100)).build();
    let file = fs::File::create(path).unwrap();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).unwrap();
    let column = StringArray::from_iter_values(items);
    writer.write(&RecordBatch::try_new(schema, vec![Arc::new(column)]).unwrap()).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_rollout_learns_its_fate_before_and_after_it_comes() {
    let yard = Yard::new();
    let told =
        |n: usize| row(n).replacen('{', &format!("{{\"uid\": \"u{n}\", \"weight_version\": 3, "), 1) + "\n";
    let fate = |n: usize, status: &str, step: usize| {
        format!(
            "{{\"kind\": \"fate\", \"uid\": \"u{n}\", \"status\": \"{status}\", \"step\": {step}, \"at\": {step}}}\n"
        )
    };
    yard.write("a.jsonl", told(1) + &told(2));
    yard.write("fates/1.jsonl", fate(1, "held", 1) + &fate(1, "trained", 5) + &fate(9, "dropped", 6));
    let catalog = yard.refreshed();
    let says = |n: usize| -> (Option<String>, Option<i64>, Option<i64>) {
        let sql = "SELECT status, trained_step, lag FROM rollouts WHERE uid = ?1";
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        catalog.connect().unwrap().query_row(sql, [format!("u{n}")], row).unwrap()
    };
    assert_eq!(says(1), (Some("trained".into()), Some(5), Some(2)));
    assert_eq!(says(2), (None, None, None));
    let revision = || count(&catalog, "SELECT value FROM facts WHERE name = 'revision'");
    let before = revision();
    yard.append("a.jsonl", told(9));
    yard.append("fates/1.jsonl", fate(2, "trained", 7));
    refresh(&catalog);
    assert_eq!(says(9), (Some("dropped".into()), None, None));
    assert_eq!(says(2), (Some("trained".into()), Some(7), Some(4)));
    assert!(revision() > before);
    assert_eq!(count(&catalog, "SELECT count(*) FROM all_rows"), 3);
    // Fates that are taken back leave nothing behind.
    fs::remove_file(yard.file("fates/1.jsonl")).unwrap();
    refresh(&catalog);
    assert_eq!(says(1), (None, None, None));
}

#[test]
fn a_group_without_difference_is_dead() {
    let yard = Yard::new();
    let of = |prompt: &str, answer: &str, reward: &str| {
        format!(
            "{{\"messages\": [{{\"role\": \"user\", \"content\": \"{prompt}\"}}, {{\"role\": \"assistant\", \"content\": \
             \"{answer}\"}}], \"attributes\": {{\"step\": 1, \"reward\": {reward}}}}}\n"
        )
    };
    let lines = [
        of("a", "1", "1"),
        of("a", "2", "1.0"),
        of("b", "1", "1"),
        of("b", "2", "0"),
        of("c", "1", "1"),
        of("d", "1", "NaN"),
        of("d", "2", "1"),
    ];
    yard.write("a.jsonl", lines.concat());
    let health = yard.refreshed().health().unwrap();
    assert_eq!((health.groups, health.dead_groups, health.odd), (4, 1, 1));
}

#[test]
fn a_damaged_or_older_catalog_is_made_anew() {
    let yard = Yard::new();
    yard.write("a.jsonl", rows(0..20));
    let path = yard.refreshed().path().to_owned();
    type Damage = fn(&Path);
    let damages: [Damage; 3] = [
        |path| fs::write(path, "no catalog at all, but text").unwrap(),
        |path| fs::write(path, "").unwrap(),
        |path| {
            let connection = rusqlite::Connection::open(path).unwrap();
            connection.pragma_update(None, "user_version", 999).unwrap();
        },
    ];
    for damage in damages {
        for suffix in ["-wal", "-shm"] {
            fs::remove_file(format!("{}{suffix}", path.display())).ok();
        }
        damage(&path);
        let catalog = yard.refreshed();
        assert_eq!(count(&catalog, "SELECT count(*) FROM rollouts"), 20);
    }
}

#[test]
fn a_cache_that_cannot_be_used_says_so_and_what_to_set() {
    let yard = Yard::new();
    yard.write("a.jsonl", rows(0..2));
    fs::write(yard.dir.path().join("cache"), "a file where a folder should be").unwrap();
    let specs = [yard.dir.path().join("runs").to_string_lossy().into_owned()];
    let opened = Catalog::open(Places::new(Roots::Anywhere), &specs, &yard.dir.path().join("cache"));
    let error = opened.unwrap_err().to_string();
    assert!(error.contains("ROLLYARD_CACHE") && error.ends_with("cache"), "{error}");
}

#[test]
fn two_at_once_give_the_same_as_one() {
    let yard = Yard::new();
    yard.write("a.jsonl", rows(0..3000));
    let reports: Vec<_> = std::thread::scope(|scope| {
        let both: Vec<_> = (0..2).map(|_| scope.spawn(|| refresh(&yard.catalog()))).collect();
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(reports.iter().all(|progress| progress.rows == 3000), "{reports:?}");
    let catalog = yard.catalog();
    assert_eq!(count(&catalog, "SELECT count(*) FROM all_rows"), 3000);
    assert_eq!(count(&catalog, "SELECT value FROM facts WHERE name = 'revision'"), 0);
}

/// Not a test of its own: what the next one runs as another process, and kills.
#[test]
fn child_that_indexes() {
    if let Some(dir) = std::env::var_os("ROLLYARD_TEST_INDEX") {
        let dir = PathBuf::from(dir);
        let specs = [dir.join("runs").to_string_lossy().into_owned()];
        refresh(&Catalog::open(Places::new(Roots::Anywhere), &specs, &dir.join("cache")).unwrap());
    }
}

#[test]
fn killed_in_the_middle_the_catalog_goes_on_to_the_same_end() {
    let yard = Yard::new();
    yard.write("a.jsonl", rows(0..120_000));
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "catalog::child_that_indexes", "--test-threads", "1"])
        .env("ROLLYARD_TEST_INDEX", yard.dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let catalog = yard.catalog();
        if count(&catalog, "SELECT count(*) FROM all_rows") > 0 {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "no rows after a minute");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let catalog = yard.refreshed();
    let sums = "SELECT count(*) || ' ' || count(DISTINCT id) || ' ' || sum(line) || ' ' || min(line) || ' ' || max(line)
                FROM rollouts";
    let sums: String = catalog.connect().unwrap().query_row(sums, [], |row| row.get(0)).unwrap();
    assert_eq!(sums, "120000 120000 7200060000 1 120000");
    let in_order = "SELECT count(*) FROM rows a JOIN rows b ON b.row = a.row + 1 WHERE b.line != a.line + 1";
    assert_eq!(count(&catalog, in_order), 0);
}

#[test]
fn a_cancelled_refresh_keeps_what_it_has() {
    let yard = Yard::new();
    yard.write("a.jsonl", rows(0..100));
    let catalog = yard.catalog();
    let cancelled = AtomicBool::new(true);
    assert!(catalog.refresh(&|_| {}, &cancelled).unwrap_err().to_string().contains("cancelled"));
    assert_eq!(refresh(&catalog).rows, 100);
}

mod random {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Action {
        Append(usize, Vec<usize>),
        AppendHalf(usize, usize),
        Replace(usize, Vec<usize>),
        Remove(usize),
        Bad(usize),
    }

    fn action() -> impl Strategy<Value = Action> {
        let file = 0..3usize;
        let rows = prop::collection::vec(0..40usize, 0..8);
        prop_oneof![
            3 => (file.clone(), rows.clone()).prop_map(|(file, rows)| Action::Append(file, rows)),
            1 => (file.clone(), 0..40usize).prop_map(|(file, n)| Action::AppendHalf(file, n)),
            1 => (file.clone(), rows).prop_map(|(file, rows)| Action::Replace(file, rows)),
            1 => file.clone().prop_map(Action::Remove),
            1 => file.prop_map(Action::Bad),
        ]
    }

    fn act(yard: &Yard, action: &Action) {
        let name = |file: &usize| format!("{file}.jsonl");
        let lines = |rows: &[usize]| rows.iter().map(|n| row(*n) + "\n").collect::<String>();
        match action {
            Action::Append(file, rows) => yard.append(&name(file), lines(rows)),
            Action::AppendHalf(file, n) => yard.append(&name(file), &row(*n)[..40]),
            Action::Replace(file, rows) => yard.write(&name(file), lines(rows)),
            Action::Remove(file) => drop(fs::remove_file(yard.file(&name(file)))),
            Action::Bad(file) => yard.append(&name(file), "{broken\n"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn whatever_happens_to_files_the_catalog_is_that_of_a_first_look(actions in prop::collection::vec(action(), 1..8)) {
            let yard = Yard::new();
            yard.write("always.jsonl", row(0) + "\n");
            let catalog = yard.catalog();
            for (nth, action) in actions.iter().enumerate() {
                act(&yard, action);
                refresh(&catalog);
                let fresh = yard.catalog_in(&format!("fresh{nth}"));
                refresh(&fresh);
                prop_assert_eq!(all(&catalog), all(&fresh));
                let (ours, theirs) = (catalog.health().unwrap(), fresh.health().unwrap());
                prop_assert_eq!(ours, theirs);
            }
        }
    }
}
