//! A request of an agent, from what it asks to what is made for it.

use rollyard_engine::generate::GenerationConfig;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

use crate::ask::{Ask, Chat, Prompt, Sampling, ToolChoice};
use crate::drive::Drive;
use crate::flight::{Asked, Ear, Flight};
use crate::gateway::{Gateway, expired, now_ms, over};
use crate::live::{Called, Inner, Live};
use crate::parse::{Grammar, Listener};
use crate::refusal::{Kind, Refusal};
use crate::session::event::Event;
use crate::session::opening::{Opening, Thoughts};
use crate::session::prepare::{Finder, Prepared};
use crate::session::turn::{Turn, TurnNo};
use crate::tell::{Begun, Call, Choice, Ended};

/// Calls are numbered within a session, a range for each turn.
const CALLS_OF_TURN: usize = 32;

/// What a request says about itself beside its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    /// The client says that it has asked this before.
    pub(crate) is_retry: bool,
    pub(crate) idempotency_key: Option<String>,
}

/// What an agent gets.
pub(crate) struct Answering {
    pub(crate) begun: Begun,
    pub(crate) called: Arc<Called>,
    pub(crate) source: Source,
}

pub(crate) enum Source {
    /// Answers under way, one for each choice.
    Flights(Vec<Ear>),
    /// Answers that were given before.
    Recorded(Vec<Choice>),
}

impl Gateway {
    pub(crate) fn answer(
        self: &Arc<Self>,
        live: &Arc<Live>,
        ask: &Ask,
        hints: &Hints,
    ) -> Result<Answering, Refusal> {
        let model = self.model.called(ask.model.as_deref())?;
        let choices = ask.choices.get();
        if choices > self.settings.choices_max {
            let message =
                format!("n is {choices}, but at most {} answers are given", self.settings.choices_max);
            return Err(Refusal::field("n", message));
        }
        let mut inner = live.inner();
        if let Some(closed) = &inner.state.closed {
            return Err(over(closed));
        }
        if now_ms() >= live.expires_ms() {
            return Err(expired(live));
        }
        let finder = Finder {
            session: &live.id,
            tokenizer: &self.model.tokenizer,
            continuity: &self.model.continuity,
            template_kwargs: &ask.template_kwargs,
            keeps_thoughts: live.opening.thoughts == Thoughts::Keep,
        };
        let state = &mut inner.state;
        let prepared = finder.prepare(&state.tree, &mut state.memory, &ask.prompt)?;
        let question = prepared.standing.question(&format!("{choices} {:?}", ask.sampling));
        let begun = |first_id: u32| Begun {
            id: format!("{}-{first_id}", live.id),
            created: now_ms() / 1000,
            model: model.clone(),
            prompt_tokens: prepared.prompt.len(),
            cached_tokens: prepared.prefix.map_or(0, |prefix| prefix.len as usize),
        };
        if let Some(called) = repeated(&inner, question, hints)
            && let Some(source) = self.again(live, &mut inner, &called, ask.logprobs)
        {
            return Ok(Answering { begun: begun(called.first_id), called, source });
        }
        self.check_budget(live, &inner, choices)?;
        let gconfig = self.sampling(&live.opening, ask, &prepared)?;
        let first_id = inner.state.next_id;
        inner.state.next_id += choices;
        let id = |no: TurnNo| inner.state.tree.get(no).map(|turn| turn.id);
        let asked = Arc::new(Asked {
            follows: prepared.follows.and_then(id),
            cut: prepared.cut,
            begins_like: prepared.prefix.and_then(|prefix| id(prefix.turn)),
            messages: prepared.messages.clone(),
        });
        let flights: Vec<Arc<Flight>> =
            (0..choices).map(|choice| Flight::new(first_id + choice, choice, Arc::clone(&asked))).collect();
        let called = Called::new(first_id, &flights);
        inner.calls.entry(question).or_default().push(Arc::clone(&called));
        if let Some(key) = &hints.idempotency_key {
            inner.by_idempotency_key.insert(key.clone(), Arc::clone(&called));
        }
        inner.running += choices;
        drop(inner);
        let begun = begun(first_id);
        let ears = flights.iter().map(Flight::listen).collect();
        let (grammar, tools) = self.grammar(ask);
        let prepared = Arc::new(prepared);
        for flight in flights {
            let mut gconfig = gconfig.clone();
            // The same seed twice would be the same answer twice: choices differ, and turns that the agent gave no seed.
            let of_session = live.opening.sampling.seed.map(|seed| seed.wrapping_add(u64::from(flight.id)));
            let of_agent = gconfig.seed.map(|seed| seed.wrapping_add(u64::from(flight.choice)));
            gconfig.seed = of_agent.or(of_session);
            let first_call = flight.id as usize * CALLS_OF_TURN;
            let listener = Listener::new(&grammar, tools, &prepared.prompt_end, first_call);
            let drive = Drive {
                gateway: Arc::clone(self),
                live: Arc::clone(live),
                called: Arc::clone(&called),
                flight,
                prepared: Arc::clone(&prepared),
                question,
                gconfig,
                logprobs: ask.logprobs,
                streams: ask.streams,
                needs_call: needs_call(ask),
            };
            tokio::spawn(drive.run(listener));
        }
        Ok(Answering { begun, called, source: Source::Flights(ears) })
    }

    /// An answer once more: from what is under way, or from what was recorded. `None` if some of it failed.
    fn again(&self, live: &Live, inner: &mut Inner, called: &Arc<Called>, logprobs: bool) -> Option<Source> {
        if called.has_failed() {
            return None;
        }
        let flights = called.flights();
        if flights.len() == called.choices as usize {
            return Some(Source::Flights(flights.iter().map(Flight::listen).collect()));
        }
        let ids = (0..called.choices).map(|choice| (choice, called.first_id + choice));
        let mut choices = Vec::with_capacity(called.choices as usize);
        for (choice, id) in ids {
            let no = inner.state.tree.by_id(id)?;
            let turn = inner.state.tree.get_mut(no)?;
            choices.push(self.recorded(turn, choice, logprobs));
            // It was made while nobody listened, and is heard after all. Whether that is safe nobody waits for: if it
            // is lost in a crash, the agent asks once more or goes on from it.
            if std::mem::take(&mut turn.facts.is_unheard) {
                drop(self.journal(&live.id, &Event::Heard { turn: no }));
            }
        }
        Some(Source::Recorded(choices))
    }

    /// What an agent was told of a turn.
    pub(crate) fn recorded(&self, turn: &Turn, choice: u32, logprobs: bool) -> Choice {
        let said = Recorded::read(&turn.answer.json);
        Choice {
            reasoning: said.reasoning_content,
            content: said.content.unwrap_or_default(),
            calls: said.tool_calls.into_iter().map(Call::from).collect(),
            tokens: if logprobs { self.spelled(&turn.sampled, &turn.logprobs) } else { Vec::new() },
            ended: Ended {
                choice,
                stop: turn.facts.stop.into(),
                stop_text: None,
                completion_tokens: turn.sampled.len(),
                reasoning_tokens: turn.facts.reasoning_tokens as usize,
            },
        }
    }

    fn check_budget(&self, live: &Live, inner: &Inner, choices: u32) -> Result<(), Refusal> {
        let budget = live.opening.budget;
        let turns = inner.state.next_id;
        if turns.saturating_add(choices) > budget.turns {
            let message =
                format!("the session's budget of {} turns is spent: {turns} were asked for", budget.turns);
            return Err(Refusal::new(Kind::Conflict, message));
        }
        let sampled = inner.state.sampled_tokens;
        if sampled >= budget.tokens {
            let message =
                format!("the session's budget of {} tokens is spent: {sampled} were sampled", budget.tokens);
            return Err(Refusal::new(Kind::Conflict, message));
        }
        Ok(())
    }

    fn sampling(
        &self,
        opening: &Opening,
        ask: &Ask,
        prepared: &Prepared,
    ) -> Result<GenerationConfig, Refusal> {
        let Sampling {
            min_tokens,
            frequency_penalty,
            presence_penalty,
            stop,
            stop_token_ids,
            json_schema,
            ..
        } = ask.sampling.clone();
        let defaults = &opening.sampling;
        let wanted = ask.sampling.max_tokens.or(defaults.max_tokens);
        let max_new_tokens = self.model.room(prepared.prompt.len(), wanted)?;
        let ours = GenerationConfig::default();
        fn pick<T>(is_fixed: bool, asked: Option<T>, default: Option<T>) -> Option<T> {
            if is_fixed { default } else { asked.or(default) }
        }
        let fixed = defaults.is_fixed;
        let temperature =
            pick(fixed, ask.sampling.temperature, defaults.temperature).unwrap_or(ours.temperature);
        Ok(GenerationConfig {
            max_new_tokens,
            min_new_tokens: min_tokens.unwrap_or_default().min(max_new_tokens),
            greedy: temperature == 0.0,
            temperature,
            top_p: pick(fixed, ask.sampling.top_p, defaults.top_p).unwrap_or(ours.top_p),
            top_k: pick(fixed, ask.sampling.top_k, defaults.top_k),
            frequency_penalty: frequency_penalty.unwrap_or_default(),
            presence_penalty: presence_penalty.unwrap_or_default(),
            stop,
            stop_token_ids,
            seed: ask.sampling.seed,
            json_schema,
        })
    }

    /// How to read the answer, and the tools that it may call. A plain completion is text.
    fn grammar<'a>(&self, ask: &'a Ask) -> (Grammar, Option<&'a RawValue>) {
        match &ask.prompt {
            Prompt::Chat(chat) => (self.model.grammar, chat.tools.as_deref()),
            Prompt::Text(_) | Prompt::Tokens(_) => {
                (Grammar::named("none").expect("there is a grammar without marks"), None)
            }
        }
    }
}

/// An answer as it is kept.
#[derive(Default, Deserialize)]
struct Recorded {
    reasoning_content: Option<String>,
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<RecordedCall>,
}

#[derive(Deserialize)]
struct RecordedCall {
    #[serde(default)]
    id: String,
    function: RecordedFunction,
}

#[derive(Deserialize)]
struct RecordedFunction {
    name: String,
    /// As the model wrote them: numbers and spaces are not ours to change.
    arguments: Box<RawValue>,
}

impl Recorded {
    fn read(message: &RawValue) -> Self {
        serde_json::from_str(message.get()).unwrap_or_default()
    }
}

impl From<RecordedCall> for Call {
    fn from(call: RecordedCall) -> Self {
        let written = call.function.arguments.get();
        let arguments = serde_json::from_str::<String>(written).unwrap_or_else(|_| written.to_owned());
        Self { id: call.id, name: call.function.name, arguments }
    }
}

fn needs_call(ask: &Ask) -> bool {
    let Prompt::Chat(Chat { tool_choice, .. }) = &ask.prompt else { return false };
    matches!(tool_choice, ToolChoice::Required | ToolChoice::Named(_))
}

/// The request that this one repeats.
///
/// A client that says so repeats. One that does not may want a second sample of the same, unless it never got the first
/// to its end.
fn repeated(inner: &Inner, question: u128, hints: &Hints) -> Option<Arc<Called>> {
    if let Some(key) = &hints.idempotency_key {
        return inner.by_idempotency_key.get(key).cloned();
    }
    let before = inner.calls.get(&question)?;
    let unheard = |called: &&Arc<Called>| {
        let is_heard = called.flights().iter().any(|flight| flight.is_heard());
        !called.is_taken() && !is_heard
    };
    let is_repeated = before.iter().rev().find(unheard);
    is_repeated.or_else(|| before.last().filter(|_| hints.is_retry)).cloned()
}
