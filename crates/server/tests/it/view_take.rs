//! What is there without files of one's own, and what can be taken along: the example run, texts of tokens, one HTML file.

use super::server::{Server, agent};
use super::view::Viewed;
use rollyard_core::tokens::Tokenizer;
use rollyard_server::Settings;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

#[test]
fn the_example_run_can_be_asked_for_and_opened() {
    let viewed = Viewed::start();
    let roots = viewed.server.get("/api/view/browse").1["folders"].clone();
    let (status, first) = viewed.server.post("/api/view/example", json!({}));
    assert_eq!(status, 200, "{first:#}");
    let place = first["place"].as_str().unwrap();
    assert!(Path::new(place).ends_with("view/example"), "{place}");
    let view = viewed.open(&[place]);
    let health = &viewed.get(&view, "")["health"];
    assert_eq!(
        (&health["rows"], &health["bad_rows"], &health["copies"]),
        (&json!(1923), &json!(2), &json!(1))
    );
    assert_eq!(viewed.server.post("/api/view/example", json!({})).1, first, "it is there already");
    assert_eq!(viewed.server.get("/api/view/browse").1["folders"], roots, "it is no root to browse");
    // What lies beside it stays out of reach.
    let beside = Path::new(place).parent().unwrap().display().to_string();
    assert_eq!(viewed.server.post("/api/view/open", json!({"places": [beside]})).0, 403);
}

#[test]
fn tokens_of_the_example_have_everything_that_is_shown_of_them() {
    let viewed = Viewed::start();
    let place = viewed.server.post("/api/view/example", json!({})).1["place"].clone();
    let view = viewed.open(&[place.as_str().unwrap()]);
    let filter = "step == 40 AND data_source == \"agent/search\"".replace(' ', "%20");
    let rows = viewed.get(&view, &format!("/rows?filter={}&limit=1", filter.replace('"', "%22")));
    let id = rows["rows"][0]["id"].as_str().unwrap();
    let shown = viewed.get(&view, &format!("/rollouts/{id}/tokens"));
    let len = |name: &str| shown[name].as_array().unwrap_or_else(|| panic!("{name}: {shown}")).len();
    let response = len("tokens") - shown["prompt_len"].as_u64().unwrap() as usize;
    assert_eq!(len("texts"), len("tokens"));
    for name in ["logprobs", "mask", "versions", "entropies", "advantages"] {
        assert_eq!(len(name), response, "{name}");
    }
    assert_eq!(shown["problems"], json!([]));
    assert!(shown["mask"].as_array().unwrap().contains(&json!(false)), "what tools said is not trained on");
}

fn chatml() -> Arc<Tokenizer> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/fixtures/tokens/chatml");
    let folder = rollyard_store::model_folder::read(&dir).unwrap();
    Arc::new(Tokenizer::new(&folder.tokenizer, folder.files()).unwrap())
}

#[test]
fn a_tokenizer_says_what_text_tokens_are() {
    let tokenizer = chatml();
    let ids = tokenizer.encoder().encode("Say hello to naïve 𓀀").unwrap();
    let rollout = |n: u64, more: Value| {
        let mut row = json!({"messages": [{"role": "user", "content": "hi"}], "attributes": {"rollout_n": n},
            "prompt_tokens": ids[..2], "response_tokens": ids[2..]});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{row}\n")
    };
    let own: Vec<String> = (0..ids.len()).map(|nth| format!("t{nth}")).collect();
    let lines = rollout(1, json!({})) + &rollout(2, json!({"token_texts": own}));
    for (tokenizer, expected) in [(Some(tokenizer), true), (None, false)] {
        let viewed = Viewed::start_with(Settings { tokenizer, ..Settings::default() });
        let file = viewed.write("tokens.jsonl", &lines);
        let view = viewed.open(&[&file]);
        let texts = |n: u64| {
            let id = viewed.get(&view, &format!("/find?rollout_n={n}"))["id"].clone();
            viewed.get(&view, &format!("/rollouts/{}/tokens", id.as_str().unwrap()))["texts"].clone()
        };
        if expected {
            let shown: Vec<String> = serde_json::from_value(texts(1)).unwrap();
            assert_eq!(shown.len(), ids.len());
            // Its vocabulary has no whole `ï` and no hieroglyph, only their bytes.
            assert_eq!(shown.concat(), r"Say hello to na\xC3\xAFve \xF0\x93\x80\x80");
        } else {
            assert_eq!(texts(1), Value::Null);
        }
        assert_eq!(texts(2), json!(own), "what the row says comes first");
    }
}

const SCRIPT: &str = "const tag = \"</script>\"; document.title = tag;";

/// A server with a page whose script is this one.
fn with_page() -> (tempfile::TempDir, Viewed) {
    let page = tempfile::tempdir().unwrap();
    std::fs::create_dir(page.path().join("bundle")).unwrap();
    std::fs::write(page.path().join("bundle/bundle.js"), SCRIPT).unwrap();
    std::fs::write(page.path().join("bundle/bundle.css"), "body { margin: 0 }").unwrap();
    let settings = Settings { page: Some(page.path().to_owned()), ..Settings::default() };
    (page, Viewed::start_with(settings))
}

fn html(server: &Server, view: &str, query: &str) -> (u16, String) {
    let mut answer =
        agent().get(server.url(&format!("/api/view/{view}/export?format=html{query}"))).call().unwrap();
    let text = answer.body_mut().with_config().limit(1 << 28).read_to_string().unwrap();
    (answer.status().as_u16(), text)
}

#[test]
fn rollouts_become_one_html_file_in_which_nothing_of_theirs_can_run() {
    let (_page, viewed) = with_page();
    let hostile = "</script><script>alert(1)</script><!-- \u{2028} <img src=x onerror=alert(1)>";
    let row = |n: u64| {
        let row = json!({"messages": [{"role": "user", "content": hostile}, {"role": "assistant", "content": "no"}],
            "attributes": {"rollout_n": n, "step": n, "reward": 0.5, "data_source": hostile}, "prompt_tokens": [1, 2],
            "response_tokens": [3], "mine": {"a": 1}});
        format!("{row}\n")
    };
    let file = viewed.write("a&b.jsonl", row(1) + &row(2) + &row(3));
    let view = viewed.open(&[&file]);
    let (status, text) = html(&viewed.server, &view, "&filter=step%20%3E%201&sort=-step&columns=step,reward");
    assert_eq!(status, 200, "{text}");
    assert!(text.starts_with("<!doctype html>") && text.trim_end().ends_with("</html>"));
    assert!(text.contains("<title>a&amp;b.jsonl</title>"), "{text}");
    assert_eq!(text.matches("<script").count(), 2, "the data and ours: {text}");
    assert_eq!(text.matches("</script>").count(), 2);
    assert!(text.contains("script-src 'sha256-") && !text.contains("unsafe-inline"));
    let begin = text.find("id=\"rollouts\">").unwrap() + "id=\"rollouts\">".len();
    let end = begin + text[begin..].find("</script>").unwrap();
    assert!(!text[begin..end].contains(['<', '\u{2028}']));
    let data: Value = serde_json::from_str(&text[begin..end]).unwrap();
    assert_eq!((&data["title"], &data["filter"]), (&json!("a&b.jsonl"), &json!("step > 1")));
    assert_eq!(data["columns"], json!(["step", "reward"]));
    assert_eq!(data["rows"][0]["values"], json!([3, 0.5]));
    assert!(data["made_at"].as_str().unwrap().ends_with('Z'));
    let id = data["rows"][0]["id"].as_str().unwrap();
    let mut expected = viewed.get(&view, &format!("/rollouts/{id}"));
    for tokens in ["prompt_tokens", "response_tokens"] {
        expected["rest"].as_object_mut().unwrap().remove(tokens).unwrap();
    }
    assert_eq!(data["rollouts"][id], expected);
    assert_eq!(data["rollouts"].as_object().unwrap().len(), 2);
}

#[test]
fn an_html_file_that_would_be_too_large_is_refused_with_what_to_do() {
    let (_page, viewed) = with_page();
    let row = |n: usize| format!("{}\n", json!({"messages": [], "attributes": {"rollout_n": n}}));
    let file = viewed.write("many.jsonl", (0..2001).map(row).collect::<String>());
    let view = viewed.open(&[&file]);
    let (status, text) = html(&viewed.server, &view, "");
    assert_eq!(status, 413, "{text}");
    assert!(text.contains("2001 rollouts") && text.contains("narrow the filter"), "{text}");
    assert_eq!(html(&viewed.server, &view, "&filter=rollout_n%20%3C%205").0, 200);
}

#[test]
fn without_its_page_a_server_says_that_html_needs_it() {
    let empty = tempfile::tempdir().unwrap();
    let viewed = Viewed::start_with(Settings { page: Some(empty.path().to_owned()), ..Settings::default() });
    let view = viewed.open_usual();
    let (status, text) = html(&viewed.server, &view, "");
    assert_eq!(status, 501, "{text}");
    assert!(text.contains("make build") && text.contains("format=jsonl"), "{text}");
}
