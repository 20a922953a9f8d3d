//! The viewer's API: opening, rows, rollouts, groups, figures, SQL, annotations.

use super::server::{Server, agent, eventually};
use rollyard_server::Settings;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A server that may show one folder of files.
pub(crate) struct Viewed {
    pub(crate) server: Server,
    pub(crate) files: TempDir,
}

impl Viewed {
    pub(crate) fn start() -> Self {
        Self::start_with(Settings::default())
    }

    pub(crate) fn start_with(settings: Settings) -> Self {
        let files = TempDir::new().unwrap();
        let server = Server::start_with(json!({}), Self::settings(&files, settings));
        Self { server, files }
    }

    /// The cache lies beside the files, where no listing looks for rollouts.
    fn settings(files: &TempDir, settings: Settings) -> Settings {
        let root = files.path().join("data");
        std::fs::create_dir_all(&root).unwrap();
        Settings { roots: vec![root], cache: Some(files.path().join("cache")), ..settings }
    }

    /// Stops, does something to the data folder, and starts again.
    pub(crate) fn restart(mut self, settings: Settings, meanwhile: impl FnOnce(&Path)) -> Self {
        let dir = self.server.dir.take().unwrap();
        drop(self.server);
        meanwhile(dir.path());
        let server = Server::start_in(dir, json!({}), Self::settings(&self.files, settings));
        Self { server, files: self.files }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.files.path().join("data").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Opens places and waits until they are indexed.
    pub(crate) fn open(&self, places: &[&str]) -> String {
        let (status, opened) = self.server.post("/api/view/open", json!({"places": places}));
        assert_eq!(status, 200, "{opened:#}");
        let view = opened["view"].as_str().unwrap().to_owned();
        eventually("the index", || {
            let shown = self.get(&view, "");
            assert!(shown["indexing"]["error"].is_null(), "{shown:#}");
            shown["indexing"]["done"] == true
        });
        view
    }

    /// A view of the usual rollouts.
    pub(crate) fn open_usual(&self) -> String {
        let file = self.write("usual.jsonl", usual());
        self.open(&[&file])
    }

    pub(crate) fn get(&self, view: &str, call: &str) -> Value {
        let (status, answer) = self.server.get(&format!("/api/view/{view}{call}"));
        assert_eq!(status, 200, "{call}: {answer:#}");
        answer
    }

    /// The values of one column, row by row.
    pub(crate) fn column(&self, view: &str, column: &str, more: &str) -> Vec<Value> {
        let answer = self.get(view, &format!("/rows?columns={column}&limit=1000&{more}"));
        answer["rows"].as_array().unwrap().iter().map(|row| row["values"][0].clone()).collect()
    }

    pub(crate) fn first_id(&self, view: &str, filter: &str) -> String {
        let answer = self.get(view, &format!("/rows?filter={}", escape(filter)));
        answer["rows"][0]["id"].as_str().unwrap_or_else(|| panic!("{filter}: {answer}")).to_owned()
    }

    /// The events of a call, until it ends.
    pub(crate) fn events(&self, call: &str) -> impl Iterator<Item = (String, Value)> + use<> {
        let response = agent().get(self.server.url(call)).call().unwrap();
        assert_eq!(response.status(), 200, "{call}");
        let mut lines = BufReader::new(response.into_body().into_reader()).lines();
        std::iter::from_fn(move || {
            let (mut name, mut data) = (String::new(), Value::Null);
            for line in lines.by_ref() {
                let line = line.ok()?;
                if let Some(value) = line.strip_prefix("event: ") {
                    name = value.to_owned();
                } else if let Some(value) = line.strip_prefix("data: ") {
                    data = serde_json::from_str(value).unwrap();
                } else if line.is_empty() && !name.is_empty() {
                    return Some((name, data));
                }
            }
            None
        })
    }
}

pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' => escaped.push(char::from(byte)),
            _ => write!(escaped, "%{byte:02X}").unwrap(),
        }
    }
    escaped
}

/// Step, prompt and sample make the rollout; prompt 0 is always solved, the others by every second sample.
pub(crate) fn row(step: u64, prompt: u64, sample: u64) -> Value {
    let reward = if prompt == 0 || sample.is_multiple_of(2) { 1.0 } else { 0.0 };
    json!({
        "messages": [
            {"role": "system", "content": "You are careful."},
            {"role": "user", "content": format!("What is {prompt} + {prompt}?")},
            {"role": "assistant", "content":
                format!("<think>\nstep {step} sample {sample}\n</think>\nThe answer is {}.", prompt * 2)},
        ],
        "attributes": {
            "sample_index": sample, "step": step, "rollout_n": step * 100 + prompt * 10 + sample, "reward": reward,
            "data_source": if prompt < 2 { "math/easy" } else { "math/hard" }, "experiment_name": "exp",
            "validate": false, "difficulty": prompt,
        },
        "timestamp": format!("2026-01-16T11:33:1{sample}.744140"),
    })
}

/// Three steps of four prompts with four samples each.
pub(crate) fn usual() -> String {
    let mut text = String::new();
    for number in 0..48 {
        writeln!(text, "{}", row(1 + number / 16, number / 4 % 4, number % 4)).unwrap();
    }
    text
}

#[test]
fn the_same_places_are_the_same_view_even_after_a_restart() {
    let viewed = Viewed::start();
    let file = viewed.write("a.jsonl", usual());
    let other = viewed.write("b.jsonl", row(9, 0, 0).to_string() + "\n");
    let view = viewed.open(&[&file, &other]);
    assert_eq!(viewed.open(&[&other, &file, &file]), view);
    assert_ne!(viewed.open(&[&file]), view);
    let shown = viewed.get(&view, "");
    assert_eq!((&shown["indexing"]["rows"], &shown["health"]["rows"]), (&json!(49), &json!(49)), "{shown:#}");
    assert_eq!(shown["extras"], json!(["difficulty"]));
    let reward =
        shown["columns"].as_array().unwrap().iter().find(|column| column["name"] == "reward").unwrap();
    assert_eq!(reward["kind"], "real");

    let viewed = viewed.restart(Settings::default(), |_| {});
    let rows = viewed.get(&view, "/rows?limit=1");
    assert_eq!(rows["total"], 49);
    let (status, error) = viewed.server.get("/api/view/0123456789abcdef");
    assert_eq!((status, &error["error"]["code"]), (404, &json!("view_unknown")));
}

#[test]
fn more_views_than_stay_open_all_answer() {
    let viewed = Viewed::start();
    let views: Vec<String> = (0..12)
        .map(|n| {
            let file = viewed.write(&format!("{n}.jsonl"), row(n, 1, 0).to_string() + "\n");
            viewed.open(&[&file])
        })
        .collect();
    for (n, view) in views.iter().enumerate() {
        assert_eq!(viewed.column(view, "step", ""), [json!(n)]);
    }
}

#[test]
fn rows_are_filtered_sorted_and_paged() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let cases = [
        ("", 48),
        ("reward > 0.5", 30),
        ("reward > 0.5 AND data_source contains \"hard\"", 12),
        ("step == 2 AND NOT (reward == 1)", 6),
        ("difficulty >= 3", 12),
        ("rollout_n == 113", 1),
    ];
    for (filter, total) in cases {
        let rows = viewed.get(&view, &format!("/rows?limit=1&filter={}", escape(filter)));
        assert_eq!(rows["total"], total, "{filter}");
        let (status, posted) =
            viewed.server.post(&format!("/api/view/{view}/rows"), json!({"filter": filter, "limit": 1}));
        assert_eq!((status, &posted["total"]), (200, &json!(total)), "{filter}");
    }
    let steps = viewed.column(&view, "rollout_n", "sort=-step,rollout_n");
    let mut expected: Vec<u64> =
        (1..=3).flat_map(|step| (0..16).map(move |n| step * 100 + n / 4 * 10 + n % 4)).collect();
    expected.sort_by_key(|n| (std::cmp::Reverse(n / 100), *n));
    assert_eq!(steps, expected.iter().map(|n| json!(n)).collect::<Vec<_>>());
    let page = viewed.column(&view, "rollout_n", "sort=-step,rollout_n&offset=46");
    assert_eq!(page, [json!(132), json!(133)]);
    let page = viewed.get(&view, "/rows?columns=step,difficulty,source_file&limit=2&offset=47");
    assert_eq!(page["columns"], json!(["step", "difficulty", "source_file"]));
    assert_eq!(page["rows"].as_array().unwrap().len(), 1);
    assert!(page["rows"][0]["values"][2].as_str().unwrap().ends_with("usual.jsonl"));
}

#[test]
fn a_rollout_is_shown_whole_and_its_bytes_as_they_stand() {
    let viewed = Viewed::start();
    let line = row(4, 1, 3).to_string().replace("\":", "\" :  ");
    let file = viewed.write("a.jsonl", format!("{}{line}\n", usual()));
    let copy = viewed.write("z.jsonl", usual().split_inclusive('\n').next().unwrap());
    let view = viewed.open(&[&file, &copy]);

    let id = viewed.first_id(&view, "rollout_n == 213");
    let shown = viewed.get(&view, &format!("/rollouts/{id}"));
    assert_eq!(shown["messages"][1]["content"], "What is 1 + 1?");
    assert_eq!(shown["attributes"]["difficulty"], 1);
    assert_eq!(shown["summary"]["reward"], 0.0);
    assert_eq!(shown["siblings"], 3, "{shown:#}");
    let channels: Vec<&Value> =
        shown["pieces"].as_array().unwrap().iter().map(|piece| &piece["channel"]).collect();
    assert_eq!(channels, ["system", "user", "reasoning", "assistant"]);
    assert_eq!(viewed.get(&view, &format!("/rollouts/{}", &id[..10]))["id"], json!(id));
    let id = viewed.first_id(&view, "rollout_n == 413");
    let raw = agent().get(viewed.server.url(&format!("/api/view/{view}/rollouts/{id}/raw"))).call().unwrap();
    assert_eq!(raw.into_body().read_to_string().unwrap(), line);

    let first = viewed.first_id(&view, "rollout_n == 100");
    let copies = viewed.get(&view, &format!("/rollouts/{first}"))["copies"].clone();
    assert_eq!(copies.as_array().unwrap().len(), 2, "{copies}");
    assert_ne!(copies[0]["file"], copies[1]["file"]);
}

#[test]
fn tokens_are_shown_where_a_row_has_them() {
    let viewed = Viewed::start();
    let mut with = row(1, 1, 1);
    let tokens = json!({"prompt_tokens": [1, 2], "response_tokens": [3, 4, 5], "loss_mask": [1, 0, 1],
        "response_logprobs": [-0.5, 0.0, -0.25], "versions": [3, -1, 4]});
    with.as_object_mut().unwrap().extend(tokens.as_object().unwrap().clone());
    let mut torn = with.clone();
    torn["attributes"]["rollout_n"] = json!(7);
    torn["loss_mask"] = json!([1]);
    let file = viewed.write("a.jsonl", format!("{with}\n{torn}\n{}\n", row(1, 0, 0)));
    let view = viewed.open(&[&file]);
    let id = viewed.first_id(&view, "rollout_n == 111");
    let shown = viewed.get(&view, &format!("/rollouts/{id}/tokens"));
    assert_eq!((&shown["tokens"], &shown["prompt_len"]), (&json!([1, 2, 3, 4, 5]), &json!(2)));
    assert_eq!((&shown["mask"], &shown["versions"]), (&json!([true, false, true]), &json!([3, -1, 4])));
    assert_eq!(shown["logprobs"], json!([-0.5, 0.0, -0.25]));
    for (filter, status, code) in
        [("rollout_n == 7", 422, "bad_tokens"), ("rollout_n == 100", 404, "no_tokens")]
    {
        let id = viewed.first_id(&view, filter);
        let (got, error) = viewed.server.get(&format!("/api/view/{view}/rollouts/{id}/tokens"));
        assert_eq!((got, &error["error"]["code"]), (status, &json!(code)), "{error}");
    }
}

#[test]
fn a_rollout_that_is_gone_is_answered_with_those_that_come_near() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let found = viewed.get(&view, "/find?rollout_n=213");
    assert_eq!(found["matches"], 1);
    let gone = "0".repeat(32);
    let (status, error) = viewed.server.get(&format!("/api/view/{view}/rollouts/{gone}?rollout_n=213"));
    assert_eq!((status, &error["error"]["nearest"]), (404, &json!([found["id"]])), "{error}");
    let (status, error) = viewed.server.get(&format!("/api/view/{view}/rollouts/{gone}"));
    assert_eq!((status, &error["error"]["nearest"]), (404, &Value::Null), "{error}");

    let twice = viewed.write(
        "b.jsonl",
        format!("{}\n{}\n", row(7, 0, 0), row(8, 0, 0)).replace("700", "5").replace("800", "5"),
    );
    let both = viewed.open(&[&twice]);
    let found = viewed.get(&both, "/find?rollout_n=5&file=b.jsonl&limit=10");
    assert_eq!((&found["matches"], found["ids"].as_array().unwrap().len()), (&json!(2), 2));
    assert_eq!(found["id"], found["ids"][0]);
    assert_eq!(viewed.server.get(&format!("/api/view/{both}/find?rollout_n=5&file=c.jsonl")).0, 404);
}

#[test]
fn a_group_knows_its_best_and_whether_there_is_anything_to_learn() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let group_of = |filter: &str| {
        let id = viewed.first_id(&view, filter);
        viewed.get(&view, &format!("/rollouts/{id}/group"))
    };
    let mixed = group_of("step == 2 AND difficulty == 3");
    assert_eq!((&mixed["total"], &mixed["zero_variance"]), (&json!(4), &json!(false)), "{mixed:#}");
    assert_eq!((&mixed["reward_mean"], &mixed["reward_max"]), (&json!(0.5), &json!(1.0)));
    assert_eq!((&mixed["best"], &mixed["worst"]), (&mixed["rollouts"][0]["id"], &mixed["rollouts"][1]["id"]));
    let solved = group_of("step == 2 AND difficulty == 0");
    assert_eq!((&solved["total"], &solved["zero_variance"]), (&json!(4), &json!(true)));

    let at = solved["columns"].as_array().unwrap().iter().position(|column| column == "group_id").unwrap();
    let group_id = solved["rollouts"][0]["values"][at].to_string().replace('"', "");
    assert_eq!(viewed.get(&view, &format!("/groups/{group_id}"))["total"], 4);
    assert_eq!(viewed.server.get(&format!("/api/view/{view}/groups/1")).0, 404);

    let id = viewed.first_id(&view, "difficulty == 3");
    let prompt = viewed.get(&view, &format!("/rollouts/{id}/prompt"));
    let steps: Vec<i64> =
        prompt["rollouts"].as_array().unwrap().iter().map(|row| row["values"][0].as_i64().unwrap()).collect();
    assert_eq!(steps, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
}

#[test]
fn figures_are_those_of_the_filter() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let facets = viewed.get(&view, "/facets?fields=data_source,reward&filter=step%3D%3D1");
    let counts: Vec<(&Value, &Value)> = facets[0]["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| (&value["value"], &value["count"]))
        .collect();
    assert!(counts.contains(&(&json!("math/easy"), &json!(8))), "{facets:#}");
    assert_eq!(facets[1]["range"], json!([0.0, 1.0]));
    let steps = viewed.get(&view, "/steps?filter=difficulty%3E0&pass_above=0.5");
    assert_eq!(steps.as_array().unwrap().len(), 3, "{steps:#}");
    assert_eq!(
        (&steps[0]["step"], &steps[0]["n"], &steps[0]["n_groups"]),
        (&json!(1), &json!(12), &json!(3))
    );
    assert_eq!((&steps[0]["reward_mean"], &steps[0]["pass_at_k"]), (&json!(0.5), &json!(1.0)));
    let series = viewed.get(&view, "/steps?series=data_source");
    assert_eq!(series.as_array().unwrap().len(), 6, "{series:#}");

    assert_eq!(viewed.get(&view, "/check?filter=reward%20%3E%200.5")["ok"], true);
    let texts = |call: &str| -> Vec<String> {
        let answer = viewed.get(&view, call);
        answer["suggestions"].as_array().unwrap().iter().map(|one| one["text"].to_string()).collect()
    };
    assert!(texts("/complete?filter=rew").contains(&"\"reward\"".to_owned()));
    assert!(texts("/complete?filter=data_source%20%3D%3D%20").iter().any(|text| text.contains("math/easy")));
}

#[test]
fn sql_is_read_only_and_bounded() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let ask = |sql: &str, limit: u64| {
        viewed.server.post(&format!("/api/view/{view}/sql"), json!({"sql": sql, "limit": limit}))
    };
    let (status, answer) =
        ask("select step, avg(reward) as mean, count(*) as n from rollouts group by step order by step", 100);
    assert_eq!((status, &answer["columns"]), (200, &json!(["step", "mean", "n"])), "{answer}");
    assert_eq!((&answer["rows"][0], &answer["more"]), (&json!([1, 0.625, 16]), &json!(false)));
    let (_, answer) = ask("select step from rollouts", 5);
    assert_eq!((answer["rows"].as_array().unwrap().len(), &answer["more"]), (5, &json!(true)));
    for (sql, part) in [
        ("select rewrd from rollouts", "reward"),
        ("delete from rows", "only SELECT"),
        ("selec 1", "selec"),
        ("", "SELECT"),
    ] {
        let (status, error) = ask(sql, 10);
        let message = error["error"]["message"].as_str().unwrap();
        assert_eq!(status, 400, "{sql}: {error}");
        assert!(message.contains(part), "{sql}: {message}");
    }
}

#[test]
fn ugly_rows_are_counted_listed_and_shown_raw() {
    let viewed = Viewed::start();
    let nan = row(1, 1, 0).to_string().replace("\"reward\":1.0", "\"reward\":NaN");
    let bad = "this is not json";
    let half = "{\"messages\": [{\"role\": \"us";
    let file = viewed.write("ugly.jsonl", format!("{}\n{nan}\n{bad}\n\n{half}", row(1, 0, 0)));
    let view = viewed.open(&[&file]);
    let problems = viewed.get(&view, "/problems");
    assert!(problems["total"].as_u64().unwrap() >= 1, "{problems:#}");
    let problem = &problems["problems"][0];
    assert_eq!(problem["line"], 3, "{problems:#}");
    let id = problem["id"].as_str().unwrap();
    let raw = agent().get(viewed.server.url(&format!("/api/view/{view}/rollouts/{id}/raw"))).call().unwrap();
    assert_eq!(raw.into_body().read_to_string().unwrap(), bad);
    assert!(viewed.get(&view, &format!("/rollouts/{id}"))["problem"].is_string());
    assert_eq!(viewed.get(&view, "/rows")["total"], 2);
    let odd = viewed.first_id(&view, "odd == true");
    assert_eq!(viewed.get(&view, &format!("/rollouts/{odd}"))["summary"]["reward"], Value::Null);
    assert_eq!(viewed.get(&view, "")["health"]["bad_rows"], problems["total"]);
}

#[test]
fn annotations_and_saved_views_outlive_the_server() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let id = viewed.first_id(&view, "rollout_n == 101");
    let add = |note: Value| viewed.server.post("/api/view/annotations", note);
    let (status, verdict) = add(json!({"id": id, "kind": "verdict", "verdict": "bad", "by": "me"}));
    assert_eq!(status, 201, "{verdict}");
    let span = json!({"message": 2, "start": 3, "end": 9});
    assert_eq!(add(json!({"id": id, "kind": "comment", "text": "here", "span": span})).0, 201);
    assert_eq!(add(json!({"id": id, "kind": "grade", "metric": "taste", "score": 3})).0, 201);
    for (note, part) in [
        (json!({"id": "abc", "kind": "tag", "tag": "x"}), "32"),
        (json!({"id": id, "kind": "tag"}), "tag"),
        (json!({"id": id, "kind": "grade", "metric": "m", "score": "high"}), "score"),
        (
            json!({"id": id, "kind": "comment", "text": "x", "span": {"message": 0, "start": 5, "end": 1}}),
            "span",
        ),
        (json!({"id": id, "kind": "shout"}), "shout"),
    ] {
        let (status, error) = add(note);
        assert!(status == 400 && error["error"]["message"].as_str().unwrap().contains(part), "{error}");
    }
    let shown = viewed.get(&view, &format!("/rollouts/{id}"))["annotations"].clone();
    assert_eq!((shown.as_array().unwrap().len(), &shown[1]["span"]), (3, &span));
    let save = json!({"name": "hard ones", "query": "filter=reward<0.5"});
    assert_eq!(viewed.server.post("/api/view/saved", save.clone()).0, 200);
    assert_eq!(viewed.server.post("/api/view/saved", json!({"name": "other", "query": ""})).0, 200);
    assert_eq!(viewed.server.delete("/api/view/saved/other").0, 200);
    assert_eq!(viewed.server.delete("/api/view/saved/other").0, 404);
    let note = verdict["note"].as_str().unwrap();
    assert_eq!(viewed.server.delete(&format!("/api/view/annotations/{note}")).0, 200);
    assert_eq!(viewed.server.delete(&format!("/api/view/annotations/{note}")).0, 404);

    // A crash tore the last line.
    let viewed = viewed.restart(Settings::default(), |data| {
        let path = data.join("view/annotations.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + "{\"note\": \"x\", \"id\"").unwrap();
    });
    let kept = viewed.server.get(&format!("/api/view/annotations?id={id}")).1;
    let kinds: Vec<&Value> =
        kept["annotations"].as_array().unwrap().iter().map(|note| &note["kind"]).collect();
    assert_eq!((kinds, &kept["total"]), (vec![&json!("grade"), &json!("comment")], &json!(2)));
    assert_eq!(viewed.server.get("/api/view/annotations?kind=tag").1["total"], 0);
    let saved = viewed.server.get("/api/view/saved").1;
    assert_eq!((saved.as_array().unwrap().len(), &saved[0]["query"]), (1, &save["query"]));
    // What the user's files hold was never touched.
    assert_eq!(std::fs::read_to_string(viewed.path("usual.jsonl")).unwrap(), usual());
}
