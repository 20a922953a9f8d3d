//! SGLang's calls.

use rollyard_tiny::tokenizer::END;
use rollyard_tiny::train::{Lesson, Student};
use serde_json::{Value, json};

use crate::server::{Server, ids, scripted, weights};

fn numbers(value: &Value) -> Vec<i32> {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn an_answer_has_the_tokens_that_were_sampled_with_their_logprobs() {
    let model = weights(96, 1);
    let server = Server::start(model.clone());
    let prompt = ids("<|user|>12+34<|end|><|assistant|>");
    for temperature in [1.0_f32, 0.7] {
        let answer = server.ask(
            "/generate",
            &json!({"input_ids": prompt, "rid": "mine", "return_logprob": true, "top_logprobs_num": 3,
                "sampling_params": {"max_new_tokens": 20, "temperature": temperature, "top_k": -1,
                    "sampling_seed": 7, "ignore_eos": true}}),
        );
        let meta = &answer["meta_info"];
        let tokens = numbers(&answer["output_ids"]);
        assert_eq!(tokens.len(), 20);
        assert_eq!(meta["finish_reason"], json!({"type": "length", "length": 20}));
        assert_eq!(
            (&meta["id"], &meta["prompt_tokens"], &meta["completion_tokens"], &meta["weight_version"]),
            (&json!("mine"), &json!(prompt.len()), &json!(20), &json!("0"))
        );
        assert!(meta["e2e_latency"].as_f64().unwrap() > 0.0);
        let triples: Vec<(f32, i32, Option<String>)> =
            serde_json::from_value(meta["output_token_logprobs"].clone()).unwrap();
        assert_eq!(triples.iter().map(|triple| triple.1).collect::<Vec<_>>(), tokens);
        let mut lesson = Lesson::answer(&prompt, &tokens);
        lesson.temperature = temperature;
        let found = Student { threads: 1 }.logprobs(&model, &[lesson]).unwrap();
        for ((told, _, text), found) in triples.iter().zip(found) {
            assert!((told - found).abs() < 1e-4, "{told} told, {found} found");
            assert_eq!(*text, None);
        }
        let tops: Vec<Vec<(f32, i32, Value)>> =
            serde_json::from_value(meta["output_top_logprobs"].clone()).unwrap();
        assert!(tops.len() == 20 && tops.iter().all(|tops| tops.len() == 3 && tops[0].0 >= tops[1].0));
    }
}

#[test]
fn the_same_seed_says_the_same_and_several_answers_differ() {
    let server = Server::start(weights(96, 1));
    let ask = |n: usize| {
        let sampling = json!({"max_new_tokens": 30, "sampling_seed": 3, "n": n});
        server.ask("/generate", &json!({"text": "<|user|>1<|end|>", "sampling_params": sampling}))
    };
    let one = ask(1);
    assert_eq!(ask(1)["output_ids"], one["output_ids"]);
    let several = ask(3);
    assert_eq!(several.as_array().unwrap().len(), 3);
    assert_eq!(several[0]["output_ids"], one["output_ids"]);
    assert_ne!(several[1]["output_ids"], one["output_ids"]);
    assert!(one["meta_info"].get("output_token_logprobs").is_none(), "nobody asked for them");
}

#[test]
fn a_list_of_prompts_is_answered_with_a_list() {
    let server = Server::start(weights(96, 1));
    let sampling = json!({"max_new_tokens": 4, "temperature": 0, "ignore_eos": true});
    let alone = |text: &str| {
        server.ask("/generate", &json!({"text": text, "sampling_params": sampling}))["output_ids"].clone()
    };
    let both = server
        .ask("/generate", &json!({"text": ["12", "345"], "rid": ["a", "b"], "sampling_params": sampling}));
    let lists =
        server.ask("/generate", &json!({"input_ids": [ids("12"), ids("345")], "sampling_params": sampling}));
    for (nth, text) in ["12", "345"].into_iter().enumerate() {
        assert_eq!(both[nth]["output_ids"], alone(text));
        assert_eq!(lists[nth]["output_ids"], alone(text));
        assert_eq!(both[nth]["meta_info"]["id"], ["a", "b"][nth]);
    }
}

#[test]
fn an_answer_says_what_ended_it() {
    let prompt = ids("<|user|>hi<|end|><|assistant|>");
    let server = Server::start(scripted(prompt.len(), "well, 46 it is"));
    let eos = ids(END)[0];
    for (sampling, text, reason) in [
        (json!({}), "well, 46 it is", json!({"type": "stop", "matched": eos})),
        (json!({"max_new_tokens": 4}), "well", json!({"type": "length", "length": 4})),
        (json!({"stop": "46"}), "well, ", json!({"type": "stop", "matched": "46"})),
        (json!({"stop": ["zz", " it"]}), "well, 46", json!({"type": "stop", "matched": " it"})),
        (json!({"stop_token_ids": ids(",")}), "well", json!({"type": "stop", "matched": ids(",")[0]})),
    ] {
        let answer = server.ask("/generate", &json!({"input_ids": prompt, "sampling_params": sampling}));
        assert_eq!(
            (&answer["text"], &answer["meta_info"]["finish_reason"]),
            (&json!(text), &reason),
            "{sampling}"
        );
    }
}

#[test]
fn a_stream_tells_all_there_is_each_time() {
    let prompt = ids("<|user|>hi<|end|><|assistant|>");
    let server = Server::start(scripted(prompt.len(), "well, 46 it is"));
    let mut question = json!({"input_ids": prompt, "return_logprob": true, "stream": true,
        "sampling_params": {"stop": "it is"}});
    let events: Vec<Value> = server.stream("/generate", &question).collect();
    let texts: Vec<&str> = events.iter().map(|event| event["text"].as_str().unwrap()).collect();
    assert_eq!(texts.first(), Some(&"w"));
    assert!(texts.iter().all(|text| "well, 46 ".starts_with(text)), "{texts:?}");
    assert!(events.iter().rev().skip(1).all(|event| event["meta_info"]["finish_reason"].is_null()));
    question["stream"] = json!(false);
    let (mut whole, mut last) = (server.ask("/generate", &question), events.last().unwrap().clone());
    for answer in [&mut whole, &mut last] {
        answer["meta_info"]["id"].take();
        answer["meta_info"]["e2e_latency"].take();
    }
    assert_eq!(whole, last);
    assert_eq!(whole["text"], "well, 46 ");
    // One event for each token, and one that ends it.
    assert_eq!(events.len(), numbers(&whole["output_ids"]).len() + 1);
}

#[test]
fn the_server_says_what_it_is_and_how_it_fares() {
    let server = Server::with(weights(96, 1), |settings| settings.model_name = "mine".to_owned());
    for path in ["/health", "/health_generate", "/flush_cache"] {
        assert_eq!(server.get(path).0, 200, "{path}");
    }
    for path in ["/get_model_info", "/model_info"] {
        let (_, info) = server.get(path);
        assert_eq!((&info["model_path"], &info["weight_version"]), (&json!("mine"), &json!("0")), "{info}");
    }
    for path in ["/get_server_info", "/server_info"] {
        let (_, info) = server.get(path);
        assert_eq!((&info["context_length"], &info["sampled_tokens"]), (&json!(96), &json!(1)), "{info}");
    }
    server.ask("/pause_generation", &json!({}));
    assert_eq!(server.get("/health_generate").0, 503);
    assert_eq!(server.get("/server_info").1["is_paused"], true);
    server.ask("/continue_generation", &json!({}));
    assert_eq!(server.get("/health_generate").0, 200);
}
