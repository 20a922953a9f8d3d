//! Groups, histograms, two views side by side, what is detected, and marks.

use super::server::eventually;
use super::view::{Viewed, escape, row};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;

fn lines(rows: &[Value]) -> String {
    rows.iter().fold(String::new(), |mut text, row| {
        writeln!(text, "{row}").unwrap();
        text
    })
}

#[test]
fn groups_are_listed_sorted_and_paged() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let all = viewed.get(&view, "/groups");
    assert_eq!((&all["total"], all["groups"].as_array().unwrap().len()), (&json!(12), 12));
    let first = &all["groups"][0];
    for (field, value) in [
        ("step", json!(1)),
        ("n", json!(4)),
        ("reward_mean", json!(1.0)),
        ("reward_std", json!(0.0)),
        ("passes", json!(4)),
        ("zero_variance", json!(true)),
        ("data_source", json!("math/easy")),
        ("truncated", json!(0)),
        ("tokens_mean", Value::Null),
    ] {
        assert_eq!(first[field], value, "{field}: {first:#}");
    }
    // A group leads to its rollouts, and its first one to it.
    let group = first["group_id"].as_str().unwrap();
    assert_eq!(viewed.get(&view, &format!("/groups/{group}"))["total"], 4);
    let rollout = viewed.get(&view, &format!("/rollouts/{}", first["first"].as_str().unwrap()));
    assert_eq!(rollout["summary"]["rollout_n"], 100);
    assert_eq!(
        rollout["summary"]["prompt_hash"].to_string().trim_matches('"'),
        first["prompt_hash"].as_str().unwrap()
    );

    let filter = escape("sample_index != 1 and data_source == \"math/hard\"");
    let page = viewed.get(
        &view,
        &format!("/groups?filter={filter}&sort=-step,reward_mean&offset=1&limit=2&pass_above=0.5"),
    );
    assert_eq!((&page["total"], page["groups"].as_array().unwrap().len()), (&json!(6), 2));
    let group = &page["groups"][0];
    assert_eq!(
        (&group["step"], &group["n"], &group["passes"]),
        (&json!(3), &json!(3), &json!(2)),
        "{group:#}"
    );
    assert_eq!(page["groups"][1]["step"], 2);
    assert_eq!(viewed.get(&view, "/groups?pass_above=1")["groups"][0]["passes"], 0);

    for (call, field) in [("sort=reward", "sort"), ("limit=0", "limit"), ("limit=1001", "limit")] {
        let (status, error) = viewed.server.get(&format!("/api/view/{view}/groups?{call}"));
        assert_eq!((status, &error["error"]["field"]), (400, &json!(field)), "{error:#}");
    }
    let (status, error) = viewed.server.get(&format!("/api/view/{view}/groups?filter=rewrd+%3E+1"));
    assert_eq!((status, &error["error"]["at"]), (400, &json!([0, 5])), "{error:#}");
}

#[test]
fn a_histogram_counts_every_row() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let told = viewed.get(&view, "/histogram");
    assert_eq!((&told["field"], &told["n"], &told["nulls"]), (&json!("reward"), &json!(48), &json!(0)));
    let bins = told["bins"].as_array().unwrap();
    assert_eq!(bins.len(), 40);
    assert_eq!(
        (&bins[0]["count"], &bins[39]["count"], &bins[20]["count"]),
        (&json!(18), &json!(30), &json!(0))
    );
    let extra =
        viewed.get(&view, &format!("/histogram?field=difficulty&bins=2&filter={}", escape("step == 1")));
    assert_eq!(
        (&extra["n"], &extra["min"], &extra["max"], &extra["mean"]),
        (&json!(16), &json!(0.0), &json!(3.0), &json!(1.5))
    );
    let one = viewed.get(&view, &format!("/histogram?filter={}", escape("reward == 1")));
    assert_eq!(one["bins"], json!([{"from": 1.0, "to": 1.0, "count": 30}]));
    assert_eq!(viewed.get(&view, "/histogram?field=tokens")["nulls"], 48);
    for (call, field) in [
        ("bins=0", "bins"),
        ("bins=201", "bins"),
        ("field=data_source", "field"),
        ("field=nothing_like_it", "field"),
    ] {
        let (status, error) = viewed.server.get(&format!("/api/view/{view}/histogram?{call}"));
        assert_eq!((status, &error["error"]["field"]), (400, &json!(field)), "{error:#}");
    }
}

#[test]
fn two_views_are_compared_on_shared_prompts() {
    let viewed = Viewed::start();
    let here = viewed.open_usual();
    let mut better: Vec<Value> = (0..3).map(|prompt| row(9, prompt, 0)).collect();
    better.push(row(9, 77, 0));
    better[2]["attributes"]["reward"] = json!(0.0);
    let there = viewed.open(&[&viewed.write("other.jsonl", lines(&better))]);
    let told = viewed.get(&here, &format!("/compare?with={there}"));
    for (field, value) in [
        ("shared", json!(3)),
        ("only_here", json!(1)),
        ("only_there", json!(1)),
        ("better", json!(1)),
        ("worse", json!(1)),
        ("same", json!(1)),
        ("delta_mean", json!(0.0)),
        ("indexing", json!(false)),
    ] {
        assert_eq!(told[field], value, "{field}: {told:#}");
    }
    let half = told["delta_high"].as_f64().unwrap();
    assert!((half - 1.959_963_984_540_054 * (0.25_f64 / 3.0).sqrt()).abs() < 1e-9, "{told:#}");
    let best = &told["pairs"][0];
    assert_eq!((&best["delta"], &best["prompt"]), (&json!(0.5), &json!("What is 1 + 1?")));
    assert_eq!((&best["here"]["n"], &best["there"]["reward_mean"]), (&json!(12), &json!(1.0)));
    let shown = viewed.get(&there, &format!("/rollouts/{}", best["there"]["best"].as_str().unwrap()));
    assert_eq!(shown["summary"]["step"], 9);

    let page = viewed.get(
        &here,
        &format!("/compare?with={there}&sort=delta&limit=1&filter={}", escape("sample_index == 0")),
    );
    assert_eq!(page["pairs"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&page["pairs"][0]["delta"], &page["pairs"][0]["here"]["n"]),
        (&json!(-1.0), &json!(3)),
        "{page:#}"
    );

    for (call, field) in [("with=0123456789abcdef", "with"), (&*format!("with={there}&sort=reward"), "sort")]
    {
        let (status, error) = viewed.server.get(&format!("/api/view/{here}/compare?{call}"));
        assert_eq!((status, &error["error"]["field"]), (400, &json!(field)), "{error:#}");
    }
    let (status, error) = viewed.server.get(&format!("/api/view/{here}/compare"));
    assert!(status == 400 && error["error"]["message"].as_str().unwrap().contains("with"), "{error:#}");
    // A name that only one of both knows.
    let bare = json!({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]});
    let bare = viewed.open(&[&viewed.write("bare.jsonl", lines(&[bare]))]);
    let (status, error) = viewed
        .server
        .get(&format!("/api/view/{here}/compare?with={bare}&filter={}", escape("difficulty > 1")));
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        status == 400 && message.contains("difficulty") && message.ends_with("in the other view"),
        "{message}"
    );
}

#[test]
fn what_is_detected_can_be_filtered_sorted_and_is_shown_with_its_span() {
    let viewed = Viewed::start();
    let mut leak = row(1, 1, 0);
    leak["messages"][1]["content"] = json!("Die Lösung ist x = 3 and y = 17.");
    leak["attributes"]["ground_truth"] = json!("x = 3 and y = 17");
    let mut tampering = row(1, 1, 1);
    tampering["messages"][2]["tool_calls"] =
        json!([{"function": {"name": "bash", "arguments": "{\"command\": \"rm -rf tests/\"}"}}]);
    let mut format_only = row(1, 1, 2);
    format_only["attributes"]["reward"] = json!({"score": 0.1, "accuracy": 0.0, "format": 0.1});
    let mut circle = row(1, 0, 0);
    circle["messages"][2]["content"] =
        json!("Wait, let me think about this once more, from the start. ".repeat(20));
    let rows = [leak, tampering, format_only, circle, row(1, 0, 1), row(1, 0, 2), row(1, 3, 0)];
    let file = viewed.write("signs.jsonl", lines(&rows));
    let view = viewed.open(&[&file]);
    for (filter, total) in [
        ("leak", 1),
        ("tampering", 1),
        ("format_only", 1),
        ("repetition > 0.3", 1),
        ("dead_group", 3),
        ("length_ratio > 2", 1),
        ("length_ratio is null", 2),
        ("not leak and not tampering", 5),
        ("abs(length_ratio) > 2", 1),
    ] {
        let rows = viewed.get(&view, &format!("/rows?filter={}", escape(filter)));
        assert_eq!(rows["total"], total, "{filter}: {rows:#}");
    }
    let ratios = viewed.column(&view, "length_ratio", "sort=-length_ratio");
    assert!(ratios[0].as_f64() > ratios[1].as_f64() && ratios[5].is_null(), "{ratios:?}");
    let sql = json!({"sql": "SELECT sum(dead_group), sum(leak), count(length_ratio) FROM rollouts"});
    let (status, answer) = viewed.server.post(&format!("/api/view/{view}/sql"), sql);
    assert_eq!((status, &answer["rows"]), (200, &json!([[3, 1, 5]])), "{answer:#}");

    let shown = |filter: &str| {
        let id = viewed.first_id(&view, filter);
        viewed.get(&view, &format!("/rollouts/{id}"))["detections"].clone()
    };
    let leak = shown("leak");
    assert_eq!(
        leak,
        json!([{"detector": "leak", "why": "the ground truth stands in the prompt", "message": 1, "channel": "user",
            "start": 15, "end": 31, "quote": "x = 3 and y = 17"}])
    );
    let tampering = shown("tampering");
    assert_eq!((&tampering[0]["channel"], &tampering[0]["quote"]), (&json!("tool_call"), &json!("tests/")));
    let format_only = shown("format_only");
    assert_eq!(
        (&format_only[0]["detector"], &format_only[0]["message"]),
        (&json!("format_only"), &Value::Null)
    );
    let circle = shown("repetition > 0.3");
    let names: Vec<_> = circle.as_array().unwrap().iter().map(|sign| sign["detector"].clone()).collect();
    assert_eq!(names, ["repetition", "dead_group", "length_ratio"]);
    assert_eq!(circle[1]["why"], "all 3 rollouts of its group have the reward 1.0");
    assert_eq!(shown("rollout_n == 130"), json!([]));

    // A rollout that comes later changes what its group is.
    let mut late = row(1, 0, 3);
    late["attributes"]["reward"] = json!(0.5);
    let mut growing = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
    growing.write_all(lines(&[late]).as_bytes()).unwrap();
    eventually("the group to be alive", || {
        viewed.open(&[&file]);
        viewed.get(&view, "/rows?filter=dead_group")["total"] == 0
    });
    assert_eq!(viewed.get(&view, "")["health"]["dead_groups"], 0);
    assert_eq!(
        viewed.get(&view, &format!("/rows?filter={}", escape("length_ratio is not null")))["total"],
        6
    );
}

#[test]
fn marks_of_many_rollouts_come_in_one_answer() {
    let viewed = Viewed::start();
    let (one, two, none) = ("1".repeat(32), "a".repeat(32), "f".repeat(32));
    let say = |note: Value| {
        let (status, kept) = viewed.server.post("/api/view/annotations", note);
        assert_eq!(status, 201, "{kept:#}");
        kept["note"].as_str().unwrap().to_owned()
    };
    say(json!({"id": one, "kind": "verdict", "verdict": "bad"}));
    say(json!({"id": one, "kind": "verdict", "verdict": "good"}));
    for tag in ["leak", "short", "leak"] {
        say(json!({"id": one, "kind": "tag", "tag": tag}));
    }
    say(json!({"id": one, "kind": "comment", "text": "hm"}));
    say(json!({"id": one, "kind": "grade", "metric": "accuracy", "score": 0.25}));
    say(json!({"id": one, "kind": "grade", "metric": "accuracy", "score": 0.75}));
    let gone = say(json!({"id": two, "kind": "comment", "text": "oops"}));
    let asked = json!({"ids": [one, two.to_uppercase(), none]});
    let (status, marks) = viewed.server.post("/api/view/annotations/of", asked.clone());
    let expected =
        json!({"verdict": "good", "tags": ["leak", "short"], "comments": 1, "grades": {"accuracy": 0.75}});
    assert_eq!((status, &marks[&one]), (200, &expected), "{marks:#}");
    assert_eq!(marks[two.to_uppercase()]["comments"], 1);
    assert_eq!(marks.as_object().unwrap().len(), 2);
    viewed.server.delete(&format!("/api/view/annotations/{gone}"));
    let (_, marks) = viewed.server.post("/api/view/annotations/of", asked);
    assert_eq!(marks.as_object().unwrap().len(), 1);
    for ids in [json!(["123"]), json!(vec![one; 1001])] {
        let (status, error) = viewed.server.post("/api/view/annotations/of", json!({"ids": ids}));
        assert_eq!((status, &error["error"]["field"]), (400, &json!("ids")), "{error:#}");
    }
}

#[test]
fn what_a_row_has_for_each_token_is_shown() {
    let viewed = Viewed::start();
    let with = |sample: u64, more: Value| {
        let mut row = row(1, 1, sample);
        let tokens = json!({"prompt_tokens": [1, 2], "response_tokens": [3, 4, 5]});
        for fields in [tokens, more] {
            row.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        }
        row
    };
    let rows = [
        with(
            0,
            json!({"entropies": [0.5, null, 1], "advantages": [9, 9, -1, 0, 1], "token_texts": ["a", "b", "c", "d", "e"]}),
        ),
        with(1, json!({"entropy": 0.3, "advantage": 2.0, "token_strings": ["c", "d", "e"]})),
        with(2, json!({"token_entropies": [1, 2]})),
    ];
    let view = viewed.open(&[&viewed.write("tokens.jsonl", lines(&rows))]);
    let tokens = |sample: u64| {
        let id = viewed.first_id(&view, &format!("sample_index == {sample}"));
        viewed.get(&view, &format!("/rollouts/{id}/tokens"))
    };
    let all = tokens(0);
    assert_eq!(all["entropies"], json!([0.5, null, 1.0]));
    assert_eq!(all["advantages"], json!([-1.0, 0.0, 1.0]), "of all tokens, only the response's are given");
    assert_eq!(all["texts"], json!(["a", "b", "c", "d", "e"]));
    let some = tokens(1);
    assert_eq!(
        (&some["entropies"], &some["advantages"]),
        (&Value::Null, &Value::Null),
        "one number is not of a token"
    );
    assert_eq!((&some["texts"], &some["problems"]), (&json!(["", "", "c", "d", "e"]), &json!([])));
    let wrong = tokens(2);
    assert_eq!(wrong["entropies"], Value::Null);
    assert!(wrong["problems"][0].as_str().unwrap().starts_with("token_entropies has 2 values"), "{wrong:#}");
}
