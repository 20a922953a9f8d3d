//! The viewer's API: streams, files, paths that lead out, and input that is none.

use super::server::{Server, agent, eventually};
use super::view::{Viewed, escape, row, usual};
use rollyard_server::Settings;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};

#[test]
fn search_streams_hits_by_channel_and_says_how_far_it_is() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let search = |query: &str| -> (Vec<Value>, Value) {
        let mut hits = Vec::new();
        for (name, data) in viewed.events(&format!("/api/view/{view}/search?{query}")) {
            match name.as_str() {
                "hit" => hits.push(data),
                "done" => return (hits, data),
                "progress" => {}
                other => panic!("{other}: {data}"),
            }
        }
        panic!("no end of {query}: {hits:?}");
    };
    for (query, count) in [
        ("text=answer%20is%206", 12),
        ("text=ANSWER%20IS%206", 12),
        ("text=ANSWER%20IS%206&case=1", 0),
        ("text=sample%203", 12),
        ("text=sample%203&channel=assistant", 0),
        ("text=sample%203&channel=reasoning", 12),
        ("text=sample%20%5B13%5D&regex=true&filter=step%3D%3D2", 8),
        ("text=nowhere", 0),
    ] {
        let (hits, done) = search(query);
        assert_eq!((hits.len(), &done["more"]), (count, &json!(false)), "{query}: {done}");
        assert_eq!(done["rows_done"], done["rows"], "{query}");
    }
    let (hits, _) = search("text=answer%20is%206&limit=12");
    let hit = &hits[0];
    let text = hit["snippet"].as_str().unwrap();
    let at = |n: usize| usize::try_from(hit["at"][n].as_u64().unwrap()).unwrap();
    assert_eq!(&text[at(0)..at(1)], "answer is 6");
    assert_eq!((&hit["channel"], &hit["message"]), (&json!("assistant"), &json!(2)));
    let shown = viewed.get(&view, &format!("/rollouts/{}", hit["id"].as_str().unwrap()));
    assert!(shown["messages"][2]["content"].as_str().unwrap().contains("answer is 6"));
    let (hits, done) = search("text=answer&limit=3");
    assert_eq!((hits.len(), &done["more"]), (3, &json!(true)));
}

#[test]
fn new_rows_come_down_the_tail() {
    let viewed = Viewed::start();
    let file = viewed.write("live.jsonl", usual());
    let view = viewed.open(&[&file]);
    let filter = escape("reward > 0.5");
    let mut events = viewed.events(&format!("/api/view/{view}/tail?columns=step,reward&filter={filter}"));
    assert_eq!(events.next().unwrap().0, "begin");
    let mut growing = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
    writeln!(growing, "{}\n{}", row(4, 1, 0), row(4, 1, 1)).unwrap();
    let (name, data) = events.next().unwrap();
    assert_eq!((name.as_str(), &data["rows"][0]["values"]), ("rows", &json!([4, 1.0])), "{data}");
    assert_eq!(data["rows"].as_array().unwrap().len(), 1);
    // Half a line is none yet.
    let line = row(5, 1, 0).to_string();
    let (start, end) = line.split_at(40);
    growing.write_all(start.as_bytes()).unwrap();
    growing.write_all(format!("{end}\n{}\n", row(5, 1, 2)).as_bytes()).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let (name, data) = events.next().unwrap();
        assert_eq!(name, "rows", "{data}");
        seen.extend(data["rows"].as_array().unwrap().iter().map(|row| row["values"][0].clone()));
    }
    assert_eq!(seen, [json!(5), json!(5)]);
    assert_eq!(viewed.get(&view, "/rows?limit=1")["total"], 52);
}

#[test]
fn a_file_that_is_replaced_resets_the_tail() {
    let viewed = Viewed::start();
    let file = viewed.write("live.jsonl", usual());
    let view = viewed.open(&[&file]);
    let mut events = viewed.events(&format!("/api/view/{view}/tail"));
    assert_eq!(events.next().unwrap().0, "begin");
    viewed.write("live.jsonl", format!("{}\n", row(9, 2, 2)));
    assert!(events.any(|(name, _)| name == "reset"));
    eventually("the new content", || viewed.get(&view, "/rows")["total"] == 1);
    drop(events);
}

#[test]
fn progress_ends_when_everything_is_indexed() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let events: Vec<(String, Value)> = viewed.events(&format!("/api/view/{view}/progress")).collect();
    let (name, last) = events.last().unwrap();
    assert_eq!((name.as_str(), &last["rows"], &last["done"]), ("done", &json!(48), &json!(true)));
}

#[test]
fn folders_are_browsed_below_the_roots() {
    let viewed = Viewed::start();
    viewed.write("run/a/one.jsonl", usual());
    viewed.write("run/b/two.jsonl", usual());
    viewed.write("run/notes.txt", "no rollouts");
    let root = viewed.server.get("/api/view/browse").1["folders"][0].as_str().unwrap().to_owned();
    let browse = |query: &str| viewed.server.get(&format!("/api/view/browse?place={}{query}", escape(&root)));
    let (_, top) = browse("");
    assert!(top["folders"][0].as_str().unwrap().ends_with("/run/"), "{top}");
    let (_, all) = browse("&recursive=true");
    assert_eq!((all["files"].as_array().unwrap().len(), &all["folders"]), (2, &json!([])), "{all}");
    assert_eq!(all["size_bytes"], 2 * usual().len());
    let (_, some) = browse("&recursive=1&name=TWO");
    assert_eq!(some["files"].as_array().unwrap().len(), 1);
}

#[test]
fn an_export_is_the_rows_as_they_stand() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let fetch = |query: &str| {
        let response =
            agent().get(viewed.server.url(&format!("/api/view/{view}/export?{query}"))).call().unwrap();
        response.into_body().read_to_string().unwrap()
    };
    let filter = format!("filter={}", escape("step == 2 AND reward < 0.5"));
    let expected: String = usual()
        .split_inclusive('\n')
        .filter(|line| line.contains("\"step\":2,") && line.contains("\"reward\":0.0"))
        .collect();
    assert_eq!(fetch(&filter), expected);
    assert_eq!(fetch("filter=").lines().count(), 48);
    let csv =
        fetch(&format!("{filter}&format=csv&columns=step,reward,data_source,difficulty&sort=rollout_n"));
    assert_eq!(csv.lines().next().unwrap(), "step,reward,data_source,difficulty");
    assert_eq!((csv.lines().nth(1).unwrap(), csv.lines().count()), ("2,0.0,math/easy,1", 7), "{csv}");
    assert!(fetch("format=csv").starts_with("id,step,reward,"));

    // What was exported as Parquet can be viewed.
    let parquet =
        agent().get(viewed.server.url(&format!("/api/view/{view}/export?{filter}&format=parquet"))).call();
    let parquet = parquet.unwrap().into_body().read_to_vec().unwrap();
    let again = viewed.open(&[&viewed.write("out.parquet", parquet)]);
    assert_eq!(viewed.column(&again, "reward", ""), vec![json!(0.0); 6]);
}

#[test]
fn scripts_of_the_older_viewer_go_on() {
    let viewed = Viewed::start();
    let file = viewed.write("run/a.jsonl", usual());
    let other = viewed.write("run/b.jsonl", row(9, 1, 1).to_string() + "\n");
    let (status, samples) =
        viewed.server.get(&format!("/api/samples?file={}&limit=2&offset=1", escape(&file)));
    assert_eq!((status, samples.as_array().unwrap().len()), (200, 2), "{samples}");
    let mut expected = row(1, 0, 1);
    expected["source_file"] = json!(file);
    assert_eq!(samples[0], expected);
    let both = format!("/api/samples?file={}&file={}&limit=100", escape(&file), escape(&other));
    let response = agent().get(viewed.server.url(&both)).call().unwrap();
    assert_eq!(response.headers()["x-total-count"], "49");

    let folder = viewed.path("run").display().to_string();
    let files = viewed.server.get(&format!("/api/files?path={}", escape(&folder))).1;
    assert_eq!((files["files"].as_array().unwrap().len(), &files["files"][0]["file"]), (2, &json!(file)));
    assert_eq!(viewed.server.get(&format!("/api/files{folder}")).1, files);
    assert_eq!(viewed.server.get("/api/files/run").1, files);
    assert_eq!(viewed.server.get("/api/files").1["files"].as_array().unwrap().len(), 2);

    let content = |query: &str| match viewed.server.get(&format!("/api/contents{query}")) {
        (200, Value::String(text)) => text,
        (200, other) => other.to_string(),
        (status, error) => panic!("{query}: {status} {error}"),
    };
    assert_eq!(content(&format!("?path={}", escape(&file))), usual());
    assert_eq!(content(&file), usual());
    let lines: String = usual().split_inclusive('\n').skip(5).take(2).collect();
    assert_eq!(content(&format!("{file}?offset=5&limit=2")), lines);
}

#[test]
fn no_path_leads_out_of_the_roots() {
    let viewed = Viewed::start();
    let secret = viewed.files.path().join("secret.jsonl");
    std::fs::write(&secret, usual()).unwrap();
    viewed.write("a.jsonl", usual());
    std::os::unix::fs::symlink(&secret, viewed.path("link.jsonl")).unwrap();
    std::os::unix::fs::symlink(viewed.files.path(), viewed.path("up")).unwrap();
    let data = viewed.path("").display().to_string();
    for path in [
        secret.display().to_string(),
        "/etc/passwd".to_owned(),
        format!("{data}../secret.jsonl"),
        format!("{data}link.jsonl"),
        format!("{data}up/secret.jsonl"),
        format!("{data}%2e%2e/secret.jsonl"),
        format!("{data}..%2fsecret.jsonl"),
        "s3://somewhere/else.jsonl".to_owned(),
    ] {
        let escaped = escape(&path);
        let (status, error) = viewed.server.post("/api/view/open", json!({"places": [path]}));
        assert_eq!((status, &error["error"]["code"]), (403, &json!("not_allowed")), "open {path}: {error}");
        for call in
            ["/api/view/browse?place=", "/api/samples?file=", "/api/files?path=", "/api/contents?path="]
        {
            let (status, error) = viewed.server.get(&format!("{call}{escaped}"));
            assert_eq!(status, 403, "{call}{path}: {error}");
        }
    }
    for call in ["/api/files/..%2f", "/api/files/%2e%2e/", "/api/contents/..%2Fsecret.jsonl"] {
        let (status, error) = viewed.server.get(call);
        assert_eq!(status, 403, "{call}: {error}");
    }
}

#[test]
fn a_run_that_is_not_archived_says_what_to_do() {
    let viewed = Viewed::start();
    let (status, error) = viewed.server.post("/api/view/open", json!({"places": ["yard://default"]}));
    assert_eq!(status, 409, "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("--archive"), "{error}");
}

#[test]
fn what_cannot_be_opened_is_said_at_once() {
    let viewed = Viewed::start();
    viewed.write("notes.txt", "no rollouts");
    std::fs::create_dir_all(viewed.path("empty")).unwrap();
    let data = viewed.path("").display().to_string();
    for (places, status, part) in [
        (json!([]), 400, "places"),
        (json!([format!("{data}nope.jsonl")]), 404, "nope.jsonl"),
        (json!([format!("{data}empty")]), 400, ".jsonl"),
        (json!([""]), 400, "empty"),
        (json!(["ftp://x/y"]), 400, "s3://"),
        (json!("x"), 400, "sequence"),
    ] {
        let (got, error) = viewed.server.post("/api/view/open", json!({"places": places}));
        let message = error["error"]["message"].as_str().unwrap_or_default();
        assert!(got == status && message.contains(part), "{places}: {got} {error}");
    }
    // Files that hold no rollouts are opened, and what is wrong with them is counted.
    for (name, bytes, bad) in
        [("empty.jsonl", &b""[..], 0), ("binary.jsonl", &[0, 159, 146, 150, 10, 255, 10][..], 2)]
    {
        let view = viewed.open(&[&viewed.write(name, bytes)]);
        let shown = viewed.get(&view, "");
        assert_eq!(
            (&shown["health"]["rows"], &shown["health"]["bad_rows"]),
            (&json!(bad), &json!(bad)),
            "{name}: {shown:#}"
        );
    }
}

#[test]
fn bad_input_is_answered_with_the_place_and_the_next_step() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    for (call, part) in [
        ("/rows?limit=1001", "1000"),
        ("/rows?limit=0", "limit"),
        ("/rows?limit=x", "limit"),
        ("/rows?colums=step", "colums"),
        ("/rows?columns=rewrd", "rewrd"),
        ("/rows?sort=-rewrd", "rewrd"),
        ("/rows?filter=rewrd%20%3E%201", "reward"),
        ("/facets?fields=rewrd", "rewrd"),
        ("/facets?values=0", "values"),
        ("/steps?filter=%28", ""),
        ("/search?text=%5B&regex=1", "regular expression"),
        ("/search?text=", "text"),
        ("/search?text=a&channel=robot", "reasoning"),
        ("/search?text=a&regex=maybe", "maybe"),
        ("/tail?after=x", "after"),
        ("/tail?filter=%28", ""),
        ("/export?format=xlsx", "xlsx"),
        ("/rollouts/zz", "32"),
        ("/rollouts/abcd", "8"),
        ("/groups/x", "group_id"),
        ("/find?rollout_n=x", "rollout_n"),
    ] {
        let (status, error) = viewed.server.get(&format!("/api/view/{view}{call}"));
        let message = error["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(part), "{call}: {status} {error}");
    }
    let (_, error) =
        viewed.server.get(&format!("/api/view/{view}/check?filter={}", escape("reward > 0.5 AND stpe == 1")));
    assert_eq!(
        (&error["error"]["code"], &error["error"]["at"]),
        (&json!("bad_filter"), &json!([17, 21])),
        "{error}"
    );
    assert!(error["error"]["expected"].as_array().unwrap().contains(&json!("step")), "{error}");
}

#[test]
fn a_search_nobody_listens_to_ends() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let mut stream = viewed.server.connect();
    write!(stream, "GET /api/view/{view}/search?text=answer HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    drop(stream);
    // The server stops only when nothing is under way.
    drop(viewed);
}

#[test]
fn a_tail_ends_with_the_server() {
    let viewed = Viewed::start();
    let view = viewed.open_usual();
    let response = agent().get(viewed.server.url(&format!("/api/view/{view}/tail"))).call().unwrap();
    let mut lines = BufReader::new(response.into_body().into_reader()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "event: begin");
    drop(viewed);
    assert!(lines.all(|line| line.is_ok_and(|line| !line.contains("error"))));
}

#[test]
fn the_token_guards_views_too_and_openapi_lists_them() {
    let token = Some("s3cret".to_owned());
    let server = Server::start_with(json!({}), Settings { token, ..Settings::default() });
    for call in ["/api/view/browse", "/api/samples", "/api/files", "/api/view/annotations"] {
        assert_eq!(server.get(call).0, 401, "{call}");
    }
    let open = Server::start(json!({}));
    let described = open.get("/api/openapi.json").1;
    let paths = described["paths"].as_object().unwrap();
    for call in [
        "open",
        "{view}/rows",
        "{view}/rollouts/{id}",
        "{view}/search",
        "{view}/tail",
        "jobs/{job}",
        "browse",
    ] {
        assert!(paths.contains_key(&format!("/api/view/{call}")), "{call}");
    }
}
