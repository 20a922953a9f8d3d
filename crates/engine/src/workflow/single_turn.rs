//! One question, one answer, one reward.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rollyard_core::tokens::Tokenizer;
use serde_json::{Map, Value};
use std::sync::Arc;

use super::ask::Asker;
use super::opening::{Opening, content, message};
use super::record::Record;
use super::render::{Renderer, refs};
use crate::episode::{Context, Data, EpisodeError, PromptAndCompletion, Sample, Trajectory, Workflow};
use crate::generate::{GenerationConfig, ModelResponse, Prompt, SharedEngine};
use crate::reward::{Judged, SharedReward};

/// With a tokenizer the prompt is rendered here and the tokens are exact. Without one the messages are sent as
/// they are, the engine applies a template of its own, and the text is all there is.
#[derive(Clone, Debug)]
pub struct SingleTurn {
    pub tokenizer: Option<Arc<Tokenizer>>,
    pub gconfig: GenerationConfig,
    pub reward: SharedReward,
    /// Said first, unless the data has a system message of its own.
    pub system: Option<String>,
    /// Further variables of the template, such as `enable_thinking`.
    pub template_kwargs: Map<String, Value>,
}

impl SingleTurn {
    pub fn new(tokenizer: Option<Arc<Tokenizer>>, gconfig: GenerationConfig, reward: SharedReward) -> Self {
        Self { tokenizer, gconfig, reward, system: None, template_kwargs: Map::new() }
    }

    async fn run(
        &self,
        engine: &SharedEngine,
        data: &Data,
        context: &Context,
    ) -> Result<Option<Trajectory>, EpisodeError> {
        let opening = Opening::read(data, self.system.as_deref())?;
        let renderer = self.renderer(&opening)?;
        let (prompt, prompt_text) = first_prompt(renderer.as_ref(), &opening)?;
        let tokens = match &prompt {
            Prompt::Tokens(tokens) => Some(tokens.clone()),
            Prompt::Chat { .. } => None,
        };
        let asker = Asker { engine, context, gconfig: &self.gconfig };
        let response = asker.ask(0, prompt, self.gconfig.max_new_tokens).await?;

        let said = Answer::read(renderer.as_ref(), &response)?;
        let mut record = tokens.map(Record::new);
        if let Some(record) = &mut record {
            record.answer(&response)?;
        }
        let mut messages = opening.messages;
        messages.push(response.message.unwrap_or_else(|| message("assistant", &said.plain)));
        let reward = self
            .reward
            .score(Judged {
                data,
                context,
                prompt: &prompt_text,
                completion: &said.plain,
                prompt_ids: record.as_ref().map(Record::prompt_tokens).unwrap_or_default(),
                completion_ids: record.as_ref().map(Record::response_tokens).unwrap_or_default(),
                messages: &messages,
            })
            .await?;
        let sample = Sample {
            segments: response.segments,
            stop_reason: Some(response.stop_reason),
            rollout: record.map(|record| record.finish(reward, &self.gconfig, data, context)).transpose()?,
            reward,
            messages,
            text: Some(PromptAndCompletion { prompt: prompt_text, completion: said.raw }),
            extra: Map::new(),
        };
        Ok(Some(Trajectory { samples: vec![sample], tensors: None }))
    }

    fn renderer(&self, opening: &Opening) -> Result<Option<Renderer>, EpisodeError> {
        let make = |tokenizer| Renderer::new(tokenizer, opening.tools.as_deref(), &self.template_kwargs);
        self.tokenizer.as_ref().map(make).transpose()
    }
}

impl Workflow for SingleTurn {
    fn run_episode<'a>(
        &'a self,
        engine: &'a SharedEngine,
        data: &'a Data,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Option<Trajectory>, EpisodeError>> {
        self.run(engine, data, context).boxed()
    }
}

/// What the engine is asked first, and its text where it is known.
pub(super) fn first_prompt(
    renderer: Option<&Renderer>,
    opening: &Opening,
) -> Result<(Prompt, String), EpisodeError> {
    match (renderer, &opening.input_ids) {
        (Some(renderer), Some(ids)) => Ok((Prompt::Tokens(ids.clone()), renderer.decode(ids)?)),
        (None, Some(ids)) => Ok((Prompt::Tokens(ids.clone()), String::new())),
        (Some(renderer), None) => {
            let text = renderer.asked(&refs(&opening.messages))?;
            Ok((Prompt::Tokens(renderer.encode(&text)?), text))
        }
        (None, None) => {
            let text: Vec<String> = opening.messages.iter().map(|said| content(said)).collect();
            let prompt = Prompt::Chat { messages: opening.messages.clone(), tools: opening.tools.clone() };
            Ok((prompt, text.join("\n\n")))
        }
    }
}

/// An answer as text.
pub(super) struct Answer {
    /// Every token of it.
    pub(super) raw: String,
    /// Without special tokens: what is judged, and what the message says.
    pub(super) plain: String,
}

impl Answer {
    pub(super) fn read(renderer: Option<&Renderer>, response: &ModelResponse) -> Result<Self, EpisodeError> {
        match renderer {
            Some(renderer) if !response.output_tokens.is_empty() => Ok(Self {
                raw: renderer.decode(&response.output_tokens)?,
                plain: renderer.decode_plain(&response.output_tokens)?,
            }),
            _ => {
                let of_message = || response.message.as_deref().map(content);
                let text = response.text.clone().or_else(of_message).unwrap_or_default();
                Ok(Self { raw: text.clone(), plain: text })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scripted::{CHATML, Reply, Scripted, breaks_off, decode, encode, says, tokenizer};
    use super::*;
    use crate::episode::EpisodeError;
    use crate::generate::StopReason;
    use crate::reward::reward_fn;
    use serde_json::json;
    use std::sync::Mutex;

    fn length() -> SharedReward {
        reward_fn("length", |judged| judged.completion.len() as f64)
    }

    fn exact(gconfig: GenerationConfig) -> SingleTurn {
        SingleTurn::new(Some(tokenizer(CHATML)), gconfig, length())
    }

    fn run_one(workflow: &SingleTurn, reply: Reply, data: &Value) -> (Sample, Arc<Scripted>) {
        let engine = Scripted::new(workflow.tokenizer.as_ref(), &[reply]);
        let trajectory = engine.run(workflow, &data.to_string()).unwrap().unwrap();
        let [sample] = trajectory.samples.try_into().unwrap();
        (sample, engine)
    }

    #[test]
    fn an_exact_answer_keeps_every_token_with_its_version() {
        let gconfig = GenerationConfig { temperature: 0.5, top_k: Some(20), ..GenerationConfig::default() };
        let workflow = exact(gconfig);
        let data = json!({"prompt": "One and two?", "env_name": "sums", "id": 12});
        let (sample, engine) = run_one(&workflow, says("It is three.<|im_end|>"), &data);
        let tokenizer = workflow.tokenizer.as_ref().unwrap();
        let rollout = sample.rollout.unwrap();
        let answer = encode(tokenizer, "It is three.<|im_end|>");
        assert_eq!(rollout.response_tokens(), answer);
        assert_eq!(decode(tokenizer, rollout.prompt_tokens()), engine.prompts()[0]);
        assert!(
            engine.prompts()[0]
                .ends_with("<|im_start|>user\nOne and two?<|im_end|>\n<|im_start|>assistant\n")
        );
        let logprobs: Vec<f32> = answer.iter().map(|id| -(*id as f32) / 8.0).collect();
        assert_eq!(rollout.response_logprobs(), Some(&logprobs[..]));
        let versions: Vec<i32> = rollout.versions().values().collect();
        assert_eq!((versions[0], versions[1]), (3, 4));
        assert_eq!(rollout.metadata.weight_step, 3);
        assert_eq!((rollout.episode_reward, sample.reward), (12.0, 12.0));
        assert_eq!((rollout.temperature, rollout.top_k), (Some(0.5), Some(20)));
        assert_eq!((&*rollout.env_name, &*rollout.env_example_id), ("sums", "12"));
        assert!(rollout.is_exact() && !rollout.is_truncated);
        let said: Value = serde_json::from_str(sample.messages.last().unwrap().get()).unwrap();
        assert_eq!(said, json!({"role": "assistant", "content": "It is three."}));
        assert_eq!(sample.text.unwrap().completion, "It is three.<|im_end|>");
    }

    #[test]
    fn an_answer_that_ran_out_of_tokens_is_truncated() {
        let (sample, _) =
            run_one(&exact(GenerationConfig::default()), breaks_off("It is"), &json!({"prompt": "?"}));
        assert!(sample.rollout.unwrap().is_truncated);
    }

    #[test]
    fn the_engine_is_asked_with_the_seed_of_the_episode_and_the_session_of_its_group() {
        let workflow = SingleTurn { system: Some("Be brief.".into()), ..exact(GenerationConfig::default()) };
        let (sample, engine) = run_one(&workflow, says("hi"), &json!({"prompt": "?"}));
        let asked = &engine.asked()[0];
        assert_eq!(asked.gconfig.seed, Some(99));
        assert_eq!(asked.session.as_deref(), Some("r-7"));
        assert!(engine.prompts()[0].contains("<|im_start|>system\nBe brief.<|im_end|>"));
        assert_eq!(sample.messages.len(), 3);
    }

    #[test]
    fn given_tokens_are_asked_with_as_they_are() {
        let (sample, engine) =
            run_one(&exact(GenerationConfig::default()), says("x"), &json!({"input_ids": [5, 6]}));
        assert!(matches!(&engine.asked()[0].prompt, Prompt::Tokens(ids) if ids == &[5, 6]));
        assert_eq!(sample.rollout.unwrap().prompt_tokens(), [5, 6]);
    }

    #[test]
    fn without_a_tokenizer_the_messages_are_all_there_is() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let keep = seen.clone();
        let reward = reward_fn("see", move |judged| {
            keep.lock().unwrap().push((judged.prompt.to_owned(), judged.completion.to_owned()));
            0.5
        });
        let workflow = SingleTurn::new(None, GenerationConfig::default(), reward);
        let message = serde_json::from_str(r#"{"role":"assistant","content":"3","refusal":null}"#).unwrap();
        let reply = Reply { message: Some(message), text: String::new(), stop_reason: StopReason::Stop };
        let data = json!({"prompt": "One and two?", "tools": [{"type": "function"}]});
        let (sample, engine) = run_one(&workflow, reply, &data);
        assert!(sample.rollout.is_none());
        assert_eq!(sample.messages[1].get(), r#"{"role":"assistant","content":"3","refusal":null}"#);
        assert_eq!(*seen.lock().unwrap(), [("One and two?".to_owned(), "3".to_owned())]);
        assert!(matches!(&engine.asked()[0].prompt, Prompt::Chat { tools: Some(_), .. }));
    }

    #[test]
    fn what_cannot_be_asked_or_scored_says_why() {
        let nan = SingleTurn { reward: reward_fn("odd", |_| f64::NAN), ..exact(GenerationConfig::default()) };
        let untemplated = SingleTurn {
            tokenizer: Some(tokenizer("{{ raise_exception('No systems.') }}")),
            ..exact(GenerationConfig::default())
        };
        let aborted = Reply { stop_reason: StopReason::Abort, ..says("x") };
        let plain = exact(GenerationConfig::default());
        for (workflow, reply, data, expect, may_pass) in [
            (&nan, says("x"), json!({"prompt": "?"}), "the reward of odd is NaN", false),
            (&untemplated, says("x"), json!({"prompt": "?"}), "refused the conversation: No systems.", false),
            (&plain, says("x"), json!({"question": "?"}), "it has question", false),
            (&plain, aborted, json!({"prompt": "?"}), "gave up the answer after 1 tokens", true),
        ] {
            let engine = Scripted::new(workflow.tokenizer.as_ref(), &[reply]);
            let error: EpisodeError = engine.run(workflow, &data.to_string()).unwrap_err();
            assert!(error.to_string().contains(expect), "{error}");
            assert_eq!(error.may_pass(), may_pass, "{error}");
        }
    }
}
