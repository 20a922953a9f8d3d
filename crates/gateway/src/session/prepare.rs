//! Finds where a request goes on in its session, and what the engine is to be asked with.

use rollyard_core::tokens::Tokenizer;
use rollyard_engine::episode::EpisodeError;
use rollyard_engine::workflow::render::Renderer;
use serde_json::value::RawValue;
use std::sync::Arc;

use super::continuity::{Continuity, Found, Next};
use super::memory::{Known, Memory, Role, Standing};
use super::tree::Tree;
use super::turn::{Cut, Prefix, TurnNo};
use crate::ask::{Chat, Prompt};
use crate::refusal::{Kind, Refusal};

/// Templates put the beginning of a thought at the end of a prompt, and it is no longer than this.
const PROMPT_END: usize = 64;

/// A request in its place.
#[derive(Debug)]
pub struct Prepared {
    pub follows: Option<TurnNo>,
    pub cut: Option<Cut>,
    pub prefix: Option<Prefix>,
    /// Behind the prefix.
    pub given: Vec<i32>,
    /// All of it: what the engine is asked with.
    pub prompt: Vec<i32>,
    pub messages: Vec<Arc<Known>>,
    /// With all messages of the request.
    pub standing: Standing,
    pub keeps_thoughts: bool,
    /// The last characters of the prompt.
    pub prompt_end: String,
}

/// What is needed to find a request's place.
#[derive(Debug)]
pub struct Finder<'a> {
    pub session: &'a str,
    pub tokenizer: &'a Arc<Tokenizer>,
    pub continuity: &'a Continuity,
    pub template_kwargs: &'a serde_json::Map<String, serde_json::Value>,
    pub keeps_thoughts: bool,
}

impl Finder<'_> {
    pub fn prepare(&self, tree: &Tree, memory: &mut Memory, prompt: &Prompt) -> Result<Prepared, Refusal> {
        match prompt {
            Prompt::Chat(chat) => self.chat(tree, memory, chat),
            Prompt::Text(text) => {
                let ids = self.tokenizer.encoder().encode_with_special(text).map_err(|error| {
                    Refusal::field("prompt", format!("the prompt cannot be made into tokens: {error}"))
                })?;
                let ids = ids.into_iter().filter_map(|id| i32::try_from(id).ok()).collect();
                Ok(plain(tree, ids, Some(Cut::Retokenised), text))
            }
            Prompt::Tokens(ids) => Ok(plain(tree, ids.clone(), Some(Cut::Rewritten), "")),
        }
    }

    fn chat(&self, tree: &Tree, memory: &mut Memory, chat: &Chat) -> Result<Prepared, Refusal> {
        let messages = self.whole(tree, memory, chat)?;
        let renderer =
            Renderer::new(self.tokenizer, chat.tools.as_deref(), self.template_kwargs).map_err(bad)?;
        let mut standing = Standing::at_first(chat.tools.as_deref(), self.template_kwargs);
        let mut last = None;
        for (at, message) in messages.iter().enumerate() {
            standing = standing.after(message);
            if let Some(turn) = tree.ended_at(standing) {
                last = Some((turn, at + 1));
            }
        }
        let Some((after, said)) = last else {
            let cut = (!tree.is_empty()).then_some(Cut::Rewritten);
            return fresh(tree, &renderer, messages, standing, None, cut);
        };
        let new = messages.get(said..).unwrap_or_default();
        let next = Next { renderer: &renderer, tree, after, new, keeps_thoughts: self.keeps_thoughts };
        let Some(Found { tail, keeps_thoughts }) = self.continuity.tail(&next).map_err(bad)? else {
            return fresh(tree, &renderer, messages, standing, Some(after), Some(Cut::Template));
        };
        let mut prompt = tree.tokens(after);
        let prefix = Prefix { turn: after, len: u32::try_from(prompt.len()).unwrap_or(u32::MAX) };
        prompt.extend(&tail.tokens);
        Ok(Prepared {
            follows: Some(after),
            cut: None,
            prefix: Some(prefix),
            given: tail.tokens,
            prompt,
            messages: new.to_vec(),
            standing,
            keeps_thoughts,
            prompt_end: end_of(&tail.asked),
        })
    }

    /// The messages of the request, after those of the answer that it names, if it names one.
    fn whole(&self, tree: &Tree, memory: &mut Memory, chat: &Chat) -> Result<Vec<Arc<Known>>, Refusal> {
        let sent = chat.messages.iter().map(|message| memory.know(message));
        let Some(follows) = &chat.follows else { return Ok(sent.collect()) };
        let sent: Vec<Arc<Known>> = sent.collect();
        let named = turn_id(follows, self.session).and_then(|id| tree.by_id(id));
        let Some((no, turn)) = named.and_then(|no| Some((no, tree.get(no)?))) else {
            let message = format!("previous_response_id is {follows:?}, but this session has no such answer");
            let field = Some("previous_response_id".to_owned());
            return Err(Refusal { field, ..Refusal::new(Kind::NotFound, message) });
        };
        let mut before: Vec<Arc<Known>> = tree.conversation(no).into_iter().cloned().collect();
        before.push(Arc::clone(&turn.answer));
        // Instructions that come again take the place of the earlier ones: they stand first, as they did.
        let instructs = sent.first().is_some_and(|first| first.role == Role::System);
        let was_instructed = before.first().is_some_and(|first| first.role == Role::System);
        if !instructs {
            before.extend(sent);
            return Ok(before);
        }
        let mut sent = sent.into_iter();
        let instructions = sent.next();
        let rest = before.into_iter().skip(usize::from(was_instructed));
        Ok(instructions.into_iter().chain(rest).chain(sent).collect())
    }
}

/// The number of a turn in the name that an agent was told: `chatcmpl-SESSION-7` is 7, and so are `SESSION-7` and `7`.
pub fn turn_id(name: &str, session: &str) -> Option<u32> {
    let Some((before, number)) = name.rsplit_once('-') else { return name.parse().ok() };
    let prefix = before.strip_suffix(session)?;
    let is_ours = prefix.is_empty() || prefix.ends_with(['-', '_']);
    number.parse().ok().filter(|_| is_ours)
}

/// Renders all of the conversation.
fn fresh(
    tree: &Tree,
    renderer: &Renderer,
    messages: Vec<Arc<Known>>,
    standing: Standing,
    follows: Option<TurnNo>,
    cut: Option<Cut>,
) -> Result<Prepared, Refusal> {
    let all: Vec<&RawValue> = messages.iter().map(|message| &*message.json).collect();
    let asked = renderer.asked(&all).map_err(bad)?;
    let prompt = renderer.encode(&asked).map_err(bad)?;
    let prefix = tree.shared(&prompt, follows);
    let given = prompt.get(prefix.map_or(0, |prefix| prefix.len as usize)..).unwrap_or_default().to_vec();
    let prompt_end = end_of(&asked);
    Ok(Prepared {
        follows,
        cut,
        prefix,
        given,
        prompt,
        messages,
        standing,
        keeps_thoughts: false,
        prompt_end,
    })
}

/// A prompt that is no conversation. It goes on from a turn if it begins with all of its tokens.
fn plain(tree: &Tree, prompt: Vec<i32>, cut: Option<Cut>, text: &str) -> Prepared {
    let prefix = tree.shared(&prompt, None);
    let goes_on =
        prefix.filter(|prefix| tree.get(prefix.turn).is_some_and(|turn| turn.len() == prefix.len as usize));
    let follows = goes_on.map(|prefix| prefix.turn);
    let given = prompt.get(prefix.map_or(0, |prefix| prefix.len as usize)..).unwrap_or_default().to_vec();
    let mut bytes = Vec::with_capacity(prompt.len() * 4);
    prompt.iter().for_each(|id| bytes.extend(id.to_le_bytes()));
    let standing = Standing(xxhash_rust::xxh3::xxh3_128(&bytes));
    let cut = cut.filter(|_| follows.is_none() && !tree.is_empty());
    let (messages, prompt_end) = (Vec::new(), end_of(text));
    Prepared { follows, cut, prefix, given, prompt, messages, standing, keeps_thoughts: false, prompt_end }
}

fn end_of(text: &str) -> String {
    let from = text.len().saturating_sub(PROMPT_END);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text.get(from..).unwrap_or_default().to_owned()
}

/// What a template refuses is the agent's own: it is told.
fn bad(error: EpisodeError) -> Refusal {
    Refusal::field("messages", format!("the model's chat template does not take the messages: {error}"))
}
