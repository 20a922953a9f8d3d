//! Filters as tables: what they become, and what is said when they become nothing.

use super::{Fields, Filter, Sql, SuggestionKind, gap};

fn fields() -> Fields {
    Fields::new(["difficulty".to_owned(), "reward.format".to_owned(), "odd name".to_owned()])
}

fn sql(filter: &str) -> Sql {
    match Filter::parse(filter, &fields()) {
        Ok(filter) => filter.sql(),
        Err(mistake) => panic!("{filter}: {mistake} at {:?}", mistake.at),
    }
}

/// The SQL with its parameters in their places.
fn shown(filter: &str) -> String {
    let Sql { text, params } = sql(filter);
    let mut params = params.into_iter();
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '?' => match params.next().unwrap() {
                rusqlite::types::Value::Integer(number) => shown.push_str(&number.to_string()),
                rusqlite::types::Value::Real(number) => shown.push_str(&format!("{number:?}")),
                rusqlite::types::Value::Text(text) => shown.push_str(&format!("'{text}'")),
                other => panic!("{other:?}"),
            },
            c => shown.push(c),
        }
    }
    assert!(params.next().is_none());
    shown
}

#[test]
fn filters_become_sql_with_bound_parameters() {
    let table = [
        ("", "1"),
        (
            "reward > 0.5 AND data_source contains \"coding\"",
            r#"("reward" > 0.5 AND contains("data_source", 'coding'))"#,
        ),
        ("reward>0.5&&step==3", r#"("reward" > 0.5 AND "step" = 3)"#),
        ("step = 1 or step <> 2 || not step != 3", r#"("step" = 1 OR "step" <> 2 OR NOT ("step" <> 3))"#),
        ("step=1 or step=2 and step=3", r#"("step" = 1 OR ("step" = 2 AND "step" = 3))"#),
        ("(step=1 or step=2) and step=3", r#"(("step" = 1 OR "step" = 2) AND "step" = 3)"#),
        ("validate", r#""validate" <> 0"#),
        ("not truncated", r#"NOT ("truncated" <> 0)"#),
        ("!validate", r#"NOT ("validate" <> 0)"#),
        ("validate == true", r#""validate" = 1"#),
        ("validate is false", r#""validate" = 0"#),
        ("data_source == math/train", r#""data_source" = 'math/train'"#),
        ("data_source == math/train and step == 1", r#"("data_source" = 'math/train' AND "step" = 1)"#),
        ("data_source in (a/b, 'c d', 3)", r#""data_source" IN ('a/b', 'c d', '3')"#),
        ("step not in [1, -2]", r#"NOT ("step" IN (1, -2))"#),
        ("reward between -1 and 0.5", r#"("reward" >= -1 AND "reward" <= 0.5)"#),
        ("reward is null", r#""reward" IS NULL"#),
        ("reward IS NOT NULL", r#"NOT ("reward" IS NULL)"#),
        ("reward == null", r#""reward" IS NULL"#),
        (r#"uid matches "^a\.b""#, r#"matches("uid", '^a\.b')"#),
        ("uid ~ 'x' and uid !~ 'y'", r#"(matches("uid", 'x') AND NOT (matches("uid", 'y')))"#),
        ("uid like 'a%'", r#"fits("uid", 'a%')"#),
        (
            "uid not startswith x and uid endswith y",
            r#"(NOT (startswith("uid", 'x')) AND endswith("uid", 'y'))"#,
        ),
        (r#"uid == "say \"hi\"""#, r#""uid" = 'say "hi"'"#),
        ("difficulty == hard", r#"+json_extract(extra, '$."difficulty"') = +'hard'"#),
        ("attributes.difficulty > 2", r#"+json_extract(extra, '$."difficulty"') > +2"#),
        ("attributes.step > 2", r#""step" > 2"#),
        ("reward.format >= .5", r#"+json_extract(extra, '$."reward.format"') >= +0.5"#),
        ("never.seen is null", r#"json_extract(extra, '$."never.seen"') IS NULL"#),
        ("`odd name` == 1", r#"+json_extract(extra, '$."odd name"') = +1"#),
        ("length(uid) > 5", r#"+length("uid") > +5"#),
        (
            "abs(reward - advantage) < 1e-3",
            r#"+abs((CAST("reward" AS REAL) - CAST("advantage" AS REAL))) < +0.001"#,
        ),
        (
            "(tokens + 1) * 2 > 3",
            r#"(CAST((CAST("tokens" AS REAL) + CAST(1 AS REAL)) AS REAL) * CAST(2 AS REAL)) > 3"#,
        ),
        ("step % 2 == 0", r#"(CAST("step" AS INTEGER) % CAST(2 AS INTEGER)) = 0"#),
        ("step == trained_step", r#""step" = "trained_step""#),
        ("0.5 < reward", r#"0.5 < "reward""#),
        ("step == \"7\"", r#""step" = 7"#),
        ("time > \"2026-01-16\"", r#""time" > 1768521600.0"#),
        ("time > 2026-01-16T01:00:00Z", r#""time" > 1768525200.0"#),
        ("REWARD > 1_000", r#""reward" > 1000"#),
    ];
    for (filter, expected) in table {
        assert_eq!(shown(filter), expected, "{filter}");
    }
}

#[test]
fn mistakes_say_where_and_what_instead() {
    // The part between the bars is what the mistake is about.
    let table = [
        ("|rewrd| > 1", "there is no field rewrd; did you mean reward?"),
        ("step == 1 and |sorce| == 2", "there is no field sorce"),
        ("reward >||", "the filter ends where a field or a value is expected"),
        ("reward > 1 |step| == 2", "step is not expected here; join conditions by AND or OR"),
        ("reward > |\"abc\"|", "\"abc\" is not a number"),
        ("|reward| contains 'x'", "contains is for text, and reward is a number"),
        ("(reward > 1||", "expected ) for the parenthesis at 1"),
        ("uid == |\"open|", "the text that begins here has no closing \""),
        ("uid matches |\"a(\"|", "not a regular expression: unclosed group"),
        ("|uid|", "uid is text; compare it with something"),
        ("0 < reward |<| 1", "comparisons do not chain"),
        ("step in |1|", "IN must be followed by values in parentheses"),
        ("step in (1 |2|)", "expected a comma or )"),
        ("reward is |5|", "IS must be followed by NULL or NOT NULL"),
        ("time > |\"yesterday\"|", "\"yesterday\" is not a time"),
        ("|length()|", "expected a field or a value, found )"),
        ("|round(1, 2, 3)| > 1", "round takes 1 to 2 arguments, not 3"),
        ("|load_extension|('x') > 1", "there is no function load_extension"),
        ("step == 1 |;| drop table rows", "; is not expected here"),
        ("reward > |1x|", "1x is not a number"),
        ("|reward == uid|", "a number cannot be compared with text"),
        ("reward between 1 |or| 2", "BETWEEN needs two values"),
        ("uid == a |#|", "'#' means nothing here"),
    ];
    for (marked, expected) in table {
        let text = marked.replace('|', "");
        let from = marked.find('|').unwrap();
        let to = marked.rfind('|').unwrap() - 1;
        let mistake = Filter::parse(&text, &fields()).expect_err(&text);
        assert!(mistake.message.starts_with(expected), "{text}: {}", mistake.message);
        if !text.starts_with("length") {
            assert_eq!(mistake.at, from..to, "{text}: {}", mistake.message);
        }
    }
}

#[test]
fn a_filter_without_end_is_refused_before_it_hurts() {
    let table = [
        ("(".repeat(10_000), "nested more than"),
        ("not ".repeat(10_000), "nested more than"),
        ("- ".repeat(10_000), "nested more than"),
        (format!("{}1 > 0", "1 + ".repeat(10_000)), "more than 400 conditions"),
        (vec!["step == 1"; 1000].join(" or "), "more than 400 conditions"),
        ("x".repeat(100_000), "the filter is longer"),
        ("uid matches \"(a{1000}){1000}\"".to_owned(), "not a regular expression: it becomes too large"),
    ];
    for (filter, expected) in table {
        let mistake = Filter::parse(&filter, &fields()).unwrap_err();
        assert!(mistake.message.starts_with(expected), "{}", mistake.message);
    }
}

#[test]
fn completion_knows_what_comes_next() {
    use SuggestionKind::{Field, Keyword, Operator, Value};
    // The bar is the cursor; the first suggestion must be this one.
    let table = [
        ("rew|", Some(("reward", Field))),
        ("reward |", Some(("==", Operator))),
        ("data_source |", Some(("==", Operator))),
        ("data_source con|", Some(("contains", Operator))),
        ("validate == |", Some(("true", Value))),
        ("reward > 1 a|", Some(("and", Keyword))),
        ("reward > 1 and da|", Some(("data_source", Field))),
        ("not trunc|", Some(("truncated", Field))),
        ("(ste|", Some(("step", Field))),
        ("uppe|", Some(("upper(", Keyword))),
        ("reward is |", Some(("null", Keyword))),
        ("diffi|", Some(("difficulty", Field))),
        ("odd n|", None),
    ];
    for (marked, expected) in table {
        let cursor = marked.find('|').unwrap();
        let completion = gap(&marked.replace('|', ""), cursor, &fields()).finish(Vec::new());
        let first = completion.suggestions.first().map(|found| (found.text.as_str(), found.kind));
        match expected {
            Some(expected) => assert_eq!(first, Some(expected), "{marked}: {:?}", completion.suggestions),
            None => assert!(completion.suggestions.iter().all(|s| s.kind != Value), "{marked}"),
        }
    }
    for (text, typed) in [
        ("data_source == |", ""),
        ("data_source == ma|", "ma"),
        ("uid == \"a b|", "a b"),
        ("step in (1, |", ""),
    ] {
        let cursor = text.find('|').unwrap();
        let gap = gap(&text.replace('|', ""), cursor, &fields());
        assert!(gap.values_of.is_some(), "{text}");
        assert_eq!(gap.typed, typed);
    }
}
