//! Columns and SQLite give the same rows, in the same order, whatever the filter and whatever the rows.

use super::columns::{Table, is_possible, order, plan, sources};
use super::filter::tree::Source;
use super::filter::{Fields, Filter, functions};
use crate::catalog::{columns_of_view, counts, schema};
use proptest::prelude::*;
use rusqlite::{Connection, params_from_iter};

type Row = (Option<i64>, Option<f64>, Option<&'static str>, Option<i64>, Option<&'static str>, Option<i64>);

fn catalog(rows: &[Row]) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(schema::TABLES).unwrap();
    connection
        .execute_batch(&format!(
            "CREATE TEMP VIEW rollouts AS SELECT r.row AS row, {}, r.line AS line,
               (SELECT e.extra FROM extras e WHERE e.row = r.row) AS extra
             FROM main.rows r WHERE bad = 0 AND copy = 0",
            columns_of_view()
        ))
        .unwrap();
    functions::add(&connection).unwrap();
    add(&connection, rows, 1);
    connection
}

fn add(connection: &Connection, rows: &[Row], first: i64) {
    for (row, (int, real, text, flag, extra, chars)) in (first..).zip(rows) {
        connection
            .execute(
                "INSERT INTO rows (row, step, reward, data_source, validate, group_id, uid, copy, bad, id, source, line, response_chars,
                   offset, length) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, x'00', 1, 1, ?9, 0, 0)",
                (row, int, real, text, flag, int.map(|int| int.wrapping_mul(0x0123_4567_89ab)), extra, row % 11 == 10, chars),
            )
            .unwrap();
        if let Some(text) = extra {
            let json = serde_json::json!({ "note": text.parse::<f64>().map_or((*text).into(), serde_json::Value::from) });
            connection.execute("INSERT INTO extras VALUES (?, ?)", (row, json.to_string())).unwrap();
        }
    }
    connection.execute_batch(counts::GROUPS_ANEW).unwrap();
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let int = prop::option::weighted(
        0.8,
        prop_oneof![
            -3_i64..4,
            Just(i64::MAX),
            Just((1 << 53) + 1),
            Just(-(1 << 40)),
            Just(127),
            Just(-128),
            Just(i64::from(i32::MIN)),
        ],
    );
    let real = prop::option::weighted(
        0.8,
        prop_oneof![
            (-3..4_i8).prop_map(|n| f64::from(n) / 2.0),
            Just(1e300),
            Just(-0.0),
            Just(9_007_199_254_740_992.0),
            Just(f64::INFINITY),
        ],
    );
    let text = || {
        prop::option::weighted(
            0.8,
            prop::sample::select(vec!["", "a", "A", "ab", "math/train", "é", "1", "10", "2.5"]),
        )
    };
    let flag = prop::option::weighted(0.8, 0..2_i64);
    let chars = prop::option::weighted(0.8, 0..5_i64);
    prop::collection::vec((int, real, text(), flag, text(), chars), 0..40)
}

fn filters() -> impl Strategy<Value = String> {
    let number = prop::sample::select(vec![
        "step",
        "reward",
        "validate",
        "group_id",
        "0",
        "1",
        "-2",
        "0.5",
        "9007199254740993",
        "1e300",
        "step + 1",
        "reward * 2",
        "step % 2",
        "reward / step",
        "-reward",
        "reward - reward",
        "group_id % step",
        "reward % 3",
        "(step - 1) / validate",
        "dead_group",
        "length_ratio",
        "length_ratio * 3",
    ]);
    let text = prop::sample::select(vec!["data_source", "uid", "note", "attributes.note"]);
    let value = prop::sample::select(vec!["''", "a", "'ab'", "\"é\"", "math/train", "'1'", "2.5"]);
    let op = || prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let how =
        prop::sample::select(vec!["contains", "startswith", "endswith", "like", "matches", "not like", "!~"]);
    let leaf = prop_oneof![
        4 => (number.clone(), op(), number.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        2 => (text.clone(), op(), value.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (value.clone(), op(), text.clone()).prop_map(|(a, op, b)| format!("'{}' {op} {b}", a.trim_matches(['\'', '"']))),
        2 => (text.clone(), how, value.clone()).prop_map(|(a, how, b)| format!("{a} {how} {b}")),
        1 => op().prop_map(|op| format!("data_source {op} uid")),
        1 => number.clone().prop_map(|a| format!("{a} in (1, -2, 0.5, 9007199254740993)")),
        1 => text.clone().prop_map(|a| format!("{a} not in (a, 'é', '1')")),
        1 => number.clone().prop_map(|a| format!("{a} between -1 and 2")),
        1 => number.prop_map(|a| format!("{a} is null")),
        1 => text.prop_map(|a| format!("{a} is not null")),
        1 => Just("validate".to_owned()),
        1 => Just("dead_group".to_owned()),
        1 => Just("length_ratio > 1".to_owned()),
        1 => Just("note > 1".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" and "))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" or "))),
            inner.prop_map(|part| format!("not ({part})")),
        ]
    })
}

fn by_sqlite(connection: &Connection, filter: &Filter, order: &str) -> Vec<i64> {
    let sql = filter.sql();
    let text = format!("SELECT row FROM rollouts WHERE {} ORDER BY {order}", sql.text);
    let mut statement = connection.prepare(&text).unwrap();
    statement.query_map(params_from_iter(sql.params), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn columns_and_sqlite_choose_the_same_rows(rows in rows(), more in rows(), text in filters()) {
        let fields = Fields::new(["note".to_owned()]);
        let filter = Filter::parse(&text, &fields).map_err(|m| TestCaseError::fail(format!("{text}: {m} {:?}", m.at)))?;
        let root = filter.root().unwrap();
        prop_assert!(is_possible(root), "{text}");
        let connection = catalog(&rows);
        let mut table = Table::default();
        // Loaded in two goes, so that what is appended is part of the claim.
        table.load(&connection, &sources(root)).unwrap();
        add(&connection, &more, 1 + rows.len() as i64);
        table.load(&connection, &sources(root)).unwrap();
        let found: Vec<i64> = plan(root, &table).unwrap().positions(table.rows.len())
            .into_iter().map(|at| table.rows[at as usize]).collect();
        prop_assert_eq!(found, by_sqlite(&connection, &filter, "row"), "{}", text);
    }

    #[test]
    fn columns_and_sqlite_sort_the_same(rows in rows(), descending: bool) {
        let connection = catalog(&rows);
        let fields = Fields::new(["note".to_owned()]);
        let all = Filter::parse("", &fields).unwrap();
        for (source, name) in [
            (Source::Column("step"), "step"), (Source::Column("reward"), "reward"), (Source::Column("uid"), "uid"),
            (Source::Column("group_id"), "group_id"), (Source::Column("dead_group"), "dead_group"),
            (Source::Column("length_ratio"), "length_ratio"), (Source::Extra("note".to_owned()), "json_extract(extra, '$.note')"),
        ] {
            let mut table = Table::default();
            table.load(&connection, &[source.clone(), Source::Column("data_source")]).unwrap();
            let mut positions: Vec<u32> = (0..table.rows.len() as u32).collect();
            order::sort(table.column(&Source::Column("data_source")).unwrap(), false, &mut positions);
            order::sort(table.column(&source).unwrap(), descending, &mut positions);
            let found: Vec<i64> = positions.into_iter().map(|at| table.rows[at as usize]).collect();
            let direction = if descending { "DESC" } else { "ASC" };
            let order = format!("{name} IS NULL, {name} {direction}, data_source IS NULL, data_source, row");
            prop_assert_eq!(found, by_sqlite(&connection, &all, &order), "{} {}", name, direction);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,60}", cursor in 0_usize..80) {
        let fields = Fields::default();
        if let Err(mistake) = Filter::parse(&text, &fields) {
            prop_assert!(mistake.at.start <= mistake.at.end && mistake.at.end <= text.len());
        }
        super::filter::gap(&text, cursor, &fields);
    }
}

#[test]
fn a_changed_revision_forgets_what_was_loaded() {
    let connection =
        catalog(&[(Some(1), None, None, None, None, None), (Some(2), None, None, None, None, None)]);
    let step = [Source::Column("step")];
    let mut table = Table::default();
    assert!(table.load(&connection, &step).unwrap());
    assert!(!table.load(&connection, &step).unwrap());
    let before = table.generation;
    connection
        .execute_batch(
            "DELETE FROM rows WHERE row = 1; UPDATE facts SET value = value + 1 WHERE name = 'revision'",
        )
        .unwrap();
    assert!(table.load(&connection, &step).unwrap());
    assert_eq!(*table.rows, [2]);
    assert_eq!(table.column(&step[0]).unwrap().int(0), Some(2));
    assert!(table.generation > before);
}
