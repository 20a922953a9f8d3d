use super::super::opening::role;
use super::super::scripted::{
    CHATML, LLAMA, Reply, Scripted, THINKING, breaks_off, decode, sampled, says, tokenizer,
};
use super::*;
use crate::command::Program;
use crate::generate::{Prompt, StopReason};
use crate::reward::reward_fn;
use crate::tool::CommandTool;
use proptest::prelude::*;
use rollyard_core::rollout::{NO_VERSION, Rollout};
use serde_json::json;

const CALL: &str = "Let me see.\n<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"a\": 1}}\n</tool_call>";

fn workflow(template: Option<&str>) -> MultiTurn {
    let schema = json!({"type": "function", "function": {"name": "echo", "parameters": {"type": "object"}}});
    let schema = serde_json::value::to_raw_value(&schema).unwrap();
    let echo = CommandTool::new("echo", schema, Program::shell("cat"));
    let reward = reward_fn("three", |judged| if judged.completion.contains("three") { 1.0 } else { 0.0 });
    MultiTurn {
        tools: ToolBox::new(vec![Arc::new(echo)]).unwrap(),
        ..MultiTurn::new(template.map(tokenizer), GenerationConfig::default(), reward)
    }
}

fn run(workflow: &MultiTurn, replies: &[Reply]) -> (Trajectory, Arc<Scripted>) {
    let engine = Scripted::new(workflow.tokenizer.as_ref(), replies);
    let trajectory = engine.run(workflow, r#"{"prompt": "One and two?"}"#).unwrap().unwrap();
    (trajectory, engine)
}

fn prompt_tokens(engine: &Scripted, turn: usize) -> Vec<i32> {
    match engine.asked()[turn].prompt.clone() {
        Prompt::Tokens(tokens) => tokens,
        Prompt::Chat { .. } => panic!("turn {turn} was asked in messages"),
    }
}

/// What holds of every exact sequence: only sampled tokens count, in the order they were sampled.
fn check_record(rollout: &Rollout, tokenizer: &Tokenizer, replies: &[&Reply]) {
    let answers: Vec<i32> = replies.iter().flat_map(|reply| sampled(tokenizer, &reply.text)).collect();
    let on: Vec<bool> = rollout.sampled().values().collect();
    let tokens = rollout.response_tokens();
    let kept: Vec<i32> = tokens.iter().zip(&on).filter(|(_, on)| **on).map(|(token, _)| *token).collect();
    assert_eq!(kept, answers);
    let logprobs = rollout.response_logprobs().unwrap();
    for (index, on) in on.iter().enumerate() {
        let expect = if *on { -(tokens[index] as f32) / 8.0 } else { 0.0 };
        assert_eq!(logprobs[index], expect);
        assert_eq!(rollout.versions().get(index) == Some(NO_VERSION), !on);
    }
}

#[test]
fn the_next_prompt_is_the_sampled_tokens_and_what_the_template_writes_behind_them() {
    let result = r#"{"a": 1}"#;
    let chatml = format!(
        "\n<|im_start|>user\n<tool_response>\n{result}\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    );
    let llama = format!(
        "<|start_header_id|>ipython<|end_header_id|>\n\n{result}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    );
    let odd =
        "Let m¦e se¦e.\n<tool_call>{\"name\": \"echo\",   \"arguments\": {\"a\": 1}}</tool_call>¦<|im_end|>";
    let thought = "<think>\nh¦m\n</think>\n\n<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"a\": 1}}\n</tool_call><|im_end|>";
    let calls = r#"{"name": "echo", "parameters": {"a": 1}}<|eot_id|>"#;
    for (template, call, end, expect) in [
        (CHATML, format!("{CALL}<|im_end|>"), "<|im_end|>", chatml.clone()),
        (CHATML, odd.to_owned(), "<|im_end|>", chatml.clone()),
        // Without the end of the turn, which some engines keep to themselves, it is given.
        (CHATML, CALL.to_owned(), "<|im_end|>", format!("<|im_end|>{chatml}")),
        (THINKING, thought.to_owned(), "<|im_end|>", chatml.clone()),
        (THINKING, format!("{CALL}<|im_end|>"), "<|im_end|>", chatml.clone()),
        (LLAMA, calls.to_owned(), "<|eot_id|>", llama.clone()),
        (LLAMA, format!("<|python_tag|>{calls}"), "<|eot_id|>", llama.clone()),
    ] {
        let workflow = workflow(Some(template));
        let tokenizer = workflow.tokenizer.clone().unwrap();
        let replies = [says(&call), says(&format!("It is three.{end}"))];
        let (trajectory, engine) = run(&workflow, &replies);
        let [sample] = trajectory.samples.try_into().unwrap();
        assert_eq!(sample.extra.get("cut"), None, "{call}");
        let (first, second) = (prompt_tokens(&engine, 0), prompt_tokens(&engine, 1));
        let so_far = [first, sampled(&tokenizer, &call)].concat();
        assert_eq!(second[..so_far.len()], so_far);
        assert_eq!(decode(&tokenizer, &second[so_far.len()..]), expect, "{call}");
        let rollout = sample.rollout.unwrap();
        check_record(&rollout, &tokenizer, &[&replies[0], &replies[1]]);
        assert!(rollout.tokens().starts_with(&second));
        assert_eq!(rollout.turns().len(), 2);
        assert_eq!((sample.reward, sample.extra["tool_calls"].clone()), (1.0, json!(1)));
        let roles: Vec<_> = sample.messages.iter().map(|said| role(said).unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
        assert!(sample.messages[1].get().contains(r#""function":{"name":"echo","arguments":{"a": 1}}"#));
    }
}

#[test]
fn a_template_that_rewrites_the_past_cuts_the_conversation() {
    let thinking = "<think>\nhm\n</think>\n\nIt is two.<|im_end|>";
    for (template, first, reason) in [
        (THINKING, thinking, "the template rewrites what was said before"),
        (
            CHATML,
            "It is two.<|im_start|>",
            "the answer ends in a token that the template does not end it with",
        ),
    ] {
        let workflow = MultiTurn { feedback: Some("Try again.".into()), ..workflow(Some(template)) };
        let tokenizer = workflow.tokenizer.clone().unwrap();
        let replies = [says(first), says("It is three.<|im_end|>")];
        let (trajectory, engine) = run(&workflow, &replies);
        let [one, two] = trajectory.samples.try_into().unwrap();
        assert_eq!((one.extra["cut"].clone(), one.extra["parts"].clone()), (json!(reason), json!(2)));
        assert_eq!(two.extra.get("cut"), None);
        assert_eq!((one.reward, two.reward), (1.0, 1.0));
        assert_eq!((one.messages.len(), two.messages.len()), (2, 4));
        assert!(!engine.prompts()[1].contains("<think>"));
        assert!(engine.prompts()[1].ends_with("Try again.<|im_end|>\n<|im_start|>assistant\n"));
        check_record(&one.rollout.unwrap(), &tokenizer, &[&replies[0]]);
        let second = two.rollout.unwrap();
        check_record(&second, &tokenizer, &[&replies[1]]);
        assert_eq!(second.prompt_tokens(), prompt_tokens(&engine, 1));
    }
}

#[test]
fn a_template_without_tokens_of_its_own_cuts_after_every_answer() {
    let plain = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}\
                 {% if add_generation_prompt %}assistant: {% endif %}";
    let workflow = MultiTurn { feedback: Some("Try again.".into()), ..workflow(Some(plain)) };
    let (trajectory, engine) = run(&workflow, &[says("It is two."), says("It is three.")]);
    let [one, two] = trajectory.samples.try_into().unwrap();
    assert_eq!(one.extra["cut"], "the template ends an answer without a token of its own");
    assert_eq!(two.rollout.unwrap().prompt_tokens(), prompt_tokens(&engine, 1));
    assert_eq!(
        engine.prompts()[1],
        "user: One and two?\nassistant: It is two.\nuser: Try again.\nassistant: "
    );
}

#[test]
fn feedback_is_given_until_the_answer_is_good_enough_and_costs_a_discount() {
    let bad = says("It is two.<|im_end|>");
    let good = says("It is three.<|im_end|>");
    for (replies, max_turns, turns, reward) in [
        (vec![good.clone()], 3, 1, 1.0),
        (vec![bad.clone(), good.clone()], 3, 2, 0.5),
        (vec![bad.clone(), bad.clone(), good.clone()], 3, 3, 0.25),
        (vec![bad.clone(), bad.clone()], 2, 2, 0.0),
    ] {
        let feedback = Some("Try again.".to_owned());
        let workflow = MultiTurn { feedback, max_turns, turn_discount: 0.5, ..workflow(Some(CHATML)) };
        let (trajectory, engine) = run(&workflow, &replies);
        let [sample] = trajectory.samples.try_into().unwrap();
        assert_eq!((engine.asked().len(), sample.reward), (turns, reward));
        let rollout = sample.rollout.unwrap();
        check_record(&rollout, workflow.tokenizer.as_ref().unwrap(), &replies.iter().collect::<Vec<_>>());
        assert_eq!((rollout.episode_reward, rollout.is_truncated), (reward, false));
        let seeds: std::collections::BTreeSet<_> =
            engine.asked().iter().map(|asked| asked.gconfig.seed).collect();
        assert_eq!(seeds.len(), turns);
    }
}

#[test]
fn a_malformed_call_is_told_to_the_model_and_marked() {
    for (call, expect) in [
        ("<tool_call>\nadd(1)\n</tool_call><|im_end|>", "Error: the call is not a JSON object"),
        ("<tool_call>\n{\"name\": \"dog\"}\n</tool_call><|im_end|>", "Error: there is no tool"),
    ] {
        let (trajectory, engine) =
            run(&workflow(Some(CHATML)), &[says(call), says("It is three.<|im_end|>")]);
        let [sample] = trajectory.samples.try_into().unwrap();
        assert!(engine.prompts()[1].contains(expect), "{}", engine.prompts()[1]);
        assert_eq!((sample.reward, sample.extra["tool_errors"].clone()), (1.0, json!(1)));
    }
}

#[test]
fn a_conversation_ends_where_its_turns_or_tokens_do() {
    let call = says(&format!("{CALL}<|im_end|>"));
    let limited = |max_turns, max_tokens| MultiTurn { max_turns, max_tokens, ..workflow(Some(CHATML)) };
    let prompt_len = prompt_tokens(&run(&limited(1, None), std::slice::from_ref(&call)).1, 0).len();
    let call_len = sampled(&tokenizer(CHATML), &call.text).len();
    for (workflow, replies, turns) in [
        // The answer broke off: there is nothing to go on from.
        (limited(8, None), vec![breaks_off(CALL)], 1),
        (limited(2, None), vec![call.clone(), call.clone()], 2),
        (limited(8, Some(prompt_len + call_len + 3)), vec![call.clone()], 1),
    ] {
        let (trajectory, engine) = run(&workflow, &replies);
        let [sample] = trajectory.samples.try_into().unwrap();
        let rollout = sample.rollout.unwrap();
        assert_eq!((engine.asked().len(), rollout.is_truncated), (turns, true));
        assert_eq!(rollout.sampled().values().last(), Some(true));
        assert_eq!(role(sample.messages.last().unwrap()).unwrap(), "assistant");
    }
    let engine = Scripted::new(Some(&tokenizer(CHATML)), &[]);
    let error = engine.run(&limited(8, Some(prompt_len)), r#"{"prompt": "One and two?"}"#).unwrap_err();
    assert!(error.to_string().contains(&format!("is {prompt_len} tokens long, but")), "{error}");
}

#[test]
fn an_answer_has_no_more_tokens_than_the_conversation_has_left() {
    let workflow = MultiTurn { max_tokens: Some(500), ..workflow(Some(CHATML)) };
    let (_, engine) = run(&workflow, &[says("It is three.<|im_end|>")]);
    let left = 500 - prompt_tokens(&engine, 0).len();
    assert_eq!(engine.asked()[0].gconfig.max_new_tokens as usize, left);
}

#[test]
fn a_chat_engine_calls_in_its_own_words() {
    let called = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"x1","type":"function","function":{"name":"echo","arguments":"{\"a\": 1}"}}]}"#;
    let own = Reply {
        message: Some(serde_json::from_str(called).unwrap()),
        stop_reason: StopReason::ToolCalls,
        ..says("")
    };
    for (reply, expect) in [(own, called), (says(CALL), r#""arguments":"{\"a\": 1}"}}]}"#)] {
        let (trajectory, engine) = run(&workflow(None), &[reply, says("It is three.")]);
        let [sample] = trajectory.samples.try_into().unwrap();
        assert!(sample.rollout.is_none());
        assert_eq!((sample.reward, sample.messages.len()), (1.0, 4));
        assert!(sample.messages[1].get().ends_with(expect), "{}", sample.messages[1]);
        let told: Value = serde_json::from_str(sample.messages[2].get()).unwrap();
        assert_eq!((&told["role"], &told["content"]), (&json!("tool"), &json!("{\"a\": 1}")));
        assert!(
            matches!(&engine.asked()[1].prompt, Prompt::Chat { messages, tools: Some(_) } if messages.len() == 3)
        );
        assert!(
            called.contains(told["tool_call_id"].as_str().unwrap()) || told["tool_call_id"] == "call00000"
        );
    }
}

#[test]
fn tokens_cannot_begin_a_conversation_of_several_turns() {
    let engine = Scripted::new(None, &[]);
    let error = engine.run(&workflow(None), r#"{"input_ids": [1]}"#).unwrap_err();
    assert!(error.to_string().contains("\"input_ids\" cannot begin"), "{error}");
}

fn words() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "It is",
        " two",
        "\n",
        " ",
        "  ",
        "¦",
        "ü",
        "<think>",
        "</think>",
        "\n\n",
        "ANY ANSWER",
        "<|im_end|>",
        "1",
        ".",
    ]);
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Whatever is said and however it is cut: what was sampled is in the samples once, in order, and every
    /// answer follows the very tokens it was asked with.
    #[test]
    fn no_token_is_lost_or_made_up(
        template in prop::sample::select(vec![CHATML, THINKING, LLAMA]),
        said in prop::collection::vec((words(), any::<bool>()), 3),
        feedback in words(),
    ) {
        let end = if template == LLAMA { "<|eot_id|>" } else { "<|im_end|>" };
        let reply = |(text, ends): &(String, bool)| says(&["So", text, if *ends { end } else { "" }].concat());
        let replies: Vec<Reply> = said.iter().map(reply).collect();
        let workflow = MultiTurn { feedback: Some(feedback), max_turns: 3, ..workflow(Some(template)) };
        let tokenizer = workflow.tokenizer.clone().unwrap();
        let (trajectory, engine) = run(&workflow, &replies);
        let mut kept = Vec::new();
        let mut turn = 0;
        for sample in &trajectory.samples {
            let rollout = sample.rollout.as_ref().unwrap();
            let mut at = rollout.prompt_len();
            let mut parts = rollout.sampled().spans().peekable();
            while at < rollout.tokens().len() {
                let answer = sampled(&tokenizer, &replies[turn].text);
                prop_assert_eq!(&prompt_tokens(&engine, turn)[..], &rollout.tokens()[..at]);
                prop_assert_eq!(&rollout.tokens()[at..at + answer.len()], &answer[..]);
                at += answer.len();
                kept.extend(answer);
                turn += 1;
                let from = at - rollout.prompt_len();
                while parts.peek().is_some_and(|(span, on)| *on || span.start < from) {
                    parts.next();
                }
                at = parts.peek().map_or(rollout.tokens().len(), |(span, _)| rollout.prompt_len() + span.end);
            }
        }
        let all: Vec<i32> = replies.iter().flat_map(|reply| sampled(&tokenizer, &reply.text)).collect();
        prop_assert_eq!(kept, all);
    }
}
