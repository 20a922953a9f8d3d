//! Templates of our own, against what transformers made of them (`fixtures/templates/make.py`).

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use rollyard_core::tokens::template::{ChatTemplate, Message, Render, Rendered, TemplateError};
use rollyard_core::tokens::template::{CivilTime, Limits, MessageError, Value, json};

const NOW: CivilTime =
    CivilTime { year: 2024, month: 7, day: 4, hour: 13, minute: 5, second: 9, microsecond: 0 };

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new("test", source, [("bos_token", "<s>"), ("eos_token", "</s>")]).unwrap()
}

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/templates");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn render(source: &str, messages: &str) -> Result<Rendered, TemplateError> {
    let messages = Message::list_from_str(messages).unwrap();
    template(source).render(&messages, &Render { now: Some(NOW), ..Render::default() })
}

fn field(case: &Value, name: &str) -> Value {
    case.get_attr(name).unwrap()
}

/// Renders one recorded case.
fn replay(case: &Value) -> Result<Rendered, TemplateError> {
    let given = |name: &str| Some(field(case, name)).filter(|value| !value.is_none());
    let messages = field(case, "messages").try_iter().unwrap().enumerate();
    let messages: Vec<_> = messages.map(|(at, message)| Message::from_value(at, &message).unwrap()).collect();
    let named = field(case, "kwargs");
    let kwargs: Vec<_> =
        named.try_iter().unwrap().map(|name| (name.to_string(), named.get_item(&name).unwrap())).collect();
    let continued = given("continue_final_message").filter(Value::is_true);
    let continued = continued.map(|field| field.as_str().unwrap_or("content").to_owned());
    let (tools, documents) = (given("tools"), given("documents"));
    let how = Render {
        tools: tools.as_ref(),
        documents: documents.as_ref(),
        add_generation_prompt: field(case, "add_generation_prompt").is_true(),
        continue_final_message: continued.as_deref(),
        now: Some(NOW),
        kwargs: &kwargs,
    };
    let name = field(case, "template").to_string();
    template(&fixture(&format!("{name}.jinja"))).render(&messages, &how)
}

#[test]
fn renders_are_those_of_transformers() {
    for (line, case) in fixture("renders.jsonl").lines().enumerate() {
        let case = json::parse(case).unwrap();
        let (text, raised) = (field(&case, "text"), field(&case, "raised"));
        match replay(&case) {
            Ok(rendered) => {
                assert_eq!(Some(&*rendered.text), text.as_str(), "line {line}");
                let spans: Vec<_> =
                    rendered.generation.iter().map(|span| vec![span.start, span.end]).collect();
                let expect = field(&case, "generation");
                // A continued message has no spans in transformers.
                if !expect.is_undefined() && !field(&case, "continue_final_message").is_true() {
                    assert_eq!(format!("{spans:?}"), expect.to_string(), "line {line}");
                }
            }
            Err(TemplateError::Raised { words, .. }) => {
                assert_eq!(Some(&*words), raised.as_str(), "line {line}");
            }
            Err(error) => assert!(field(&case, "fails").is_true(), "line {line}: {error}"),
        }
    }
}

#[test]
fn generation_spans_are_where_the_text_is_even_inside_a_macro() {
    let messages = r#"[{"role":"user","content":"one"},{"role":"assistant","content":"zwei ü"},
        {"role":"user","content":"3"},{"role":"assistant","content":"vier"}]"#;
    let rendered = render(&fixture("generation_macro.jinja"), messages).unwrap();
    assert_eq!(rendered.text, "Q: one\nA: zwei ü\nQ: 3\nA: vier\n");
    let spans: Vec<_> = rendered.generation.into_iter().map(|span| &rendered.text[span]).collect();
    assert_eq!(spans, ["zwei ü", "vier"]);
}

#[test]
fn a_message_cannot_forge_a_generation_span() {
    let messages = "[{\"role\":\"user\",\"content\":\"\u{f0000}x\u{f0001}\"},{\"role\":\"assistant\",\"content\":\"y\"}]";
    let rendered = render(&fixture("generation_macro.jinja"), messages).unwrap();
    assert_eq!(rendered.text, "Q: \u{f0000}x\u{f0001}\nA: y\n");
    let spans: Vec<_> = rendered.generation.into_iter().filter_map(|span| rendered.text.get(span)).collect();
    assert_eq!(spans, ["y"]);
}

#[test]
fn a_continued_message_ends_the_text() {
    let source = "{% for m in messages %}<{{ m.content|trim }}>{% endfor %}";
    let messages = Message::list_from_str(r#"[{"role":"assistant","content":"half a "}]"#).unwrap();
    let how = Render { continue_final_message: Some("content"), ..Render::default() };
    assert_eq!(template(source).render(&messages, &how).unwrap().text, "<half a");
    let both = Render { add_generation_prompt: true, ..how };
    let error = template(source).render(&messages, &both).unwrap_err().to_string();
    assert!(error.contains("exclude each other"), "{error}");
}

#[test]
fn one_template_serves_many_threads_and_prefixes() {
    let shared = Arc::new(template("{{ bos_token }}{% for m in messages %}{{ m.content }};{% endfor %}"));
    let messages = Message::list_from_str(r#"[{"content":"a"},{"content":"b"},{"content":"c"}]"#).unwrap();
    let workers: Vec<_> = (1..=3)
        .map(|len| {
            let (shared, messages) = (shared.clone(), messages.clone());
            thread::spawn(move || shared.render(&messages[..len], &Render::default()).unwrap().text)
        })
        .collect();
    let texts: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    assert_eq!(texts, ["<s>a;", "<s>a;b;", "<s>a;b;c;"]);
}

#[test]
fn errors_say_what_and_where() {
    let one = r#"[{"role":"user","content":"hi"}]"#;
    for (source, expect) in [
        ("\n{{ raise_exception('no ' ~ messages[0].role) }}", "refused the conversation: no user"),
        ("a\n{{ messages.x.y }}", "failed in line 2"),
        ("{% for x in messages[0].nope.more %}{% endfor %}", "failed in line 1"),
    ] {
        let error = render(source, one).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }
    let error = ChatTemplate::new("default", "ok\n{% if %}", []).unwrap_err().to_string();
    assert!(error.contains("\"default\" has a syntax error in line 2"), "{error}");
    let error = template("").render(&[], &Render::default()).unwrap_err().to_string();
    assert!(error.contains("no messages"), "{error}");
    let undated = template("{{ strftime_now('%Y') }}");
    let messages = Message::list_from_str(one).unwrap();
    let error = undated.render(&messages, &Render::default()).unwrap_err().to_string();
    assert!(error.contains("give `now`"), "{error}");
}

#[test]
fn a_message_that_is_no_object_is_named_by_its_index() {
    let error = Message::list_from_str(r#"[{"role":"user"}, "hi"]"#).unwrap_err();
    assert!(matches!(error, MessageError::NotAnObject { index: 1, .. }), "{error}");
}

#[test]
fn a_template_without_end_is_stopped() {
    let limits = Limits { fuel: 10_000, text_bytes: 1000 };
    let one = Message::list_from_str(r#"[{"role":"user"}]"#).unwrap();
    for source in [
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for a in range(999) %}{{ 'x' * 99 }}{% endfor %}",
    ] {
        let template = ChatTemplate::with_limits("hostile", source, [], limits).unwrap();
        assert!(template.render(&one, &Render::default()).is_err(), "{source}");
    }
}

#[test]
fn whole_numbers_keep_all_their_digits() {
    let long = "1234567890123456789012345678901234567890123456789";
    let text =
        render("{{ messages[0].n|tojson }} {{ messages[0] }}", &format!(r#"[{{"n":{long}}}]"#)).unwrap().text;
    assert_eq!(text, format!("{long} {{'n': {long}}}"));
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,12}".prop_map(Into::into),
        "<think>.{0,5}</think>".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec(("[a-z]{1,4}|type|text|function|name|arguments|items", inner), 0..4)
                .prop_map(|pairs| serde_json::Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn text_without_tags_renders_to_itself(text in "[^{}\r]{0,60}[^{}\r\n]") {
        prop_assert_eq!(render(&text, r#"[{"role":"user"}]"#).unwrap().text, text);
    }

    #[test]
    fn no_message_makes_a_template_panic(
        messages in prop::collection::vec(
            (prop::sample::select(vec!["user", "assistant", "tool", "system"]), any_json(), any_json()), 1..4),
        flags in any::<(bool, bool)>(),
    ) {
        let messages: Vec<_> = messages.into_iter().enumerate().map(|(at, (role, content, calls))| {
            let message = serde_json::json!({"role": role, "content": content, "tool_calls": calls});
            Message::from_json(at, &message).unwrap()
        }).collect();
        let how = Render {
            add_generation_prompt: flags.0,
            continue_final_message: flags.1.then_some("content"),
            now: Some(NOW),
            ..Render::default()
        };
        for name in ["chatml", "chatml_think", "llama_like", "mistral_like", "generation_macro", "kitchen_sink"] {
            if let Ok(rendered) = template(&fixture(&format!("{name}.jinja"))).render(&messages, &how) {
                for span in rendered.generation {
                    prop_assert!(rendered.text.get(span).is_some());
                }
            }
        }
    }

    #[test]
    fn json_is_read_as_serde_reads_it(value in any_json()) {
        let ours = json::parse(&value.to_string()).unwrap();
        prop_assert_eq!(ours.to_string(), json::from_json(&value).to_string());
    }
}
