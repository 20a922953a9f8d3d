//! Why answers end.

use super::*;

#[tokio::test]
async fn answers_end_where_they_are_told_to() {
    let weights = weights(96, 5);
    let engine = engine(&weights, EngineSettings::default());
    let free = engine.ask(ask("<|user|>1", 7, 60)).await.unwrap();
    assert_eq!((free.ended.clone(), free.tokens.len()), (Ended::Length, 60));
    let text = engine.text_of(&free);
    let eos = ids(tokenizer::END)[0];
    let fifth = free.tokens[4];
    let first_of_fifth = free.tokens.iter().position(|token| *token == fifth).unwrap();
    let letters: Vec<char> = text.chars().collect();
    let (one, two): (String, String) = (letters[20..21].iter().collect(), letters[20..22].iter().collect());
    type Change<'a> = Box<dyn Fn(&mut GenerationConfig) + 'a>;
    let table: Vec<(&str, Change<'_>, Ended)> = vec![
        ("a budget", Box::new(|s| s.max_new_tokens = 3), Ended::Length),
        ("none at all", Box::new(|s| s.max_new_tokens = 0), Ended::Length),
        ("a context", Box::new(|s| s.max_new_tokens = 4000), Ended::Length),
        ("a token", Box::new(|s| s.stop_token_ids = vec![fifth]), Ended::StopToken(fifth)),
        ("a letter", Box::new(|s| s.stop = vec![one.clone()]), Ended::StopText(one.clone())),
        (
            "two letters",
            Box::new(|s| s.stop = vec!["nowhere".into(), two.clone()]),
            Ended::StopText(two.clone()),
        ),
    ];
    for (name, change, ended) in table {
        let mut ask = ask("<|user|>1", 7, 60);
        change(&mut ask.sampling);
        let answer = engine.ask(ask).await.unwrap();
        assert_eq!(answer.ended, ended, "{name}");
        assert_eq!(answer.logprobs.len(), answer.tokens.len(), "{name}");
        let shared = answer.tokens.len().min(60);
        assert_eq!(answer.tokens[..shared], free.tokens[..shared], "{name}");
        match name {
            "a budget" => assert_eq!(answer.tokens.len(), 3),
            "none at all" => assert_eq!((answer.tokens.len(), answer.segments.len()), (0, 0)),
            "a context" => assert_eq!(answer.tokens.len(), 96 - ids("<|user|>1").len()),
            "a token" => assert_eq!(answer.tokens.len(), first_of_fifth + 1),
            _ => {
                let shown = engine.text_of(&answer);
                assert!(
                    text.starts_with(&shown) && shown.len() < text.len(),
                    "{name}: {shown:?} of {text:?}"
                );
                let Ended::StopText(stop) = &answer.ended else { panic!("{name}") };
                assert_eq!(Some(shown.len()), text.find(stop.as_str()), "{name}: the first one ends it");
            }
        }
    }
    // The model's own end, which every other answer here ignores.
    let mut ends = 0;
    for seed in 0..40 {
        let answer = engine.ask(Ask { ignore_eos: false, ..ask("<|user|>1", seed, 90) }).await.unwrap();
        let stopped = answer.ended == Ended::StopToken(eos);
        assert_eq!(stopped, answer.tokens.contains(&eos));
        assert!(!stopped || answer.tokens.iter().position(|id| *id == eos) == Some(answer.tokens.len() - 1));
        ends += u32::from(stopped);
    }
    assert!(ends > 5, "{ends} of 40 ended by themselves");
}

#[tokio::test]
async fn nothing_ends_an_answer_before_its_least_tokens() {
    let weights = weights(96, 5);
    let engine = engine(&weights, EngineSettings::default());
    for seed in 0..30 {
        let mut ask = Ask { ignore_eos: false, ..ask("<|user|>1", seed, 90) };
        ask.sampling.min_new_tokens = 40;
        ask.sampling.stop = vec!["a".into(), "1".into()];
        let answer = engine.ask(ask).await.unwrap();
        assert!(answer.tokens.len() >= 40, "{} with seed {seed}", answer.tokens.len());
        assert!(!answer.tokens[..39].contains(&ids(tokenizer::END)[0]));
    }
}

#[tokio::test]
async fn a_bad_request_is_told_what_is_wrong() {
    let weights = weights(96, 5);
    let engine = engine(&weights, EngineSettings::default());
    type Change = fn(&mut Ask);
    let table: [(Change, &str, &str); 12] = [
        (|ask| ask.prompt.clear(), "prompt", "no tokens"),
        (|ask| ask.prompt.push(5000), "prompt", "token 5000 is none"),
        (|ask| ask.prompt.push(-1), "prompt", "token -1 is none"),
        (|ask| ask.prompt = vec![20; 96], "prompt", "a prompt of 96 tokens leaves no room"),
        (|ask| ask.sampling.temperature = -0.5, "temperature", "\"temperature\" is -0.5"),
        (|ask| ask.sampling.temperature = f32::NAN, "temperature", "is NaN"),
        (|ask| ask.sampling.presence_penalty = 0.5, "presence_penalty", "\"presence_penalty\" is 0.5"),
        (|ask| ask.sampling.json_schema = Some("{}".into()), "json_schema", "\"json_schema\" is \"{}\""),
        (|ask| ask.sampling.top_p = 0.0, "top_p", "\"top_p\" is 0"),
        (|ask| ask.sampling.top_k = Some(0), "top_k", "\"top_k\" is 0"),
        (|ask| ask.sampling.stop = vec![String::new()], "stop", "empty"),
        (|ask| ask.sampling.min_new_tokens = 70, "min_new_tokens", "is 70, but must not be above"),
    ];
    for (change, field, words) in table {
        let mut ask = ask("<|user|>1", 7, 60);
        change(&mut ask);
        let error = engine.ask(ask).await.unwrap_err();
        let AskError::Bad { field: named, message } = error else { panic!("{error}") };
        assert_eq!(named, field);
        assert!(message.contains(words), "{message}");
    }
}
