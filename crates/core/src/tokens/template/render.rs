//! A compiled template, and one rendering of it.

use std::ops::Range;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Object};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};

use super::continuation::{self, Tagged};
use super::date::{CivilTime, StrftimeNow};
use super::error::{ContinueError, RaisedWords, TemplateError};
use super::generation::{Tracker, Writer, unused_markers};
use super::message::Message;
use super::value::{Dict, List};
use super::{filters, methods, python, source};
use crate::tokens::spares::Spares;

/// How to render: everything but the messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Render<'a> {
    /// A list of JSON schemas.
    pub tools: Option<&'a Value>,
    /// A list of objects, for templates that ground their answers.
    pub documents: Option<&'a Value>,
    pub add_generation_prompt: bool,
    /// The field of the final message to go on with: `Some("content")` is Python's `True`.
    pub continue_final_message: Option<&'a str>,
    /// What `strftime_now` tells; a template that asks without it fails.
    pub now: Option<CivilTime>,
    /// Further variables such as `enable_thinking`; they hide special tokens of the same name.
    pub kwargs: &'a [(String, Value)],
}

/// The text, and what of it stood in `{% generation %}` blocks, as byte ranges in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    pub generation: Vec<Range<usize>>,
}

/// How much a template may do before it is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps of the engine in one render.
    pub fuel: u64,
    /// Size of the text.
    pub text_bytes: usize,
}

impl Default for Limits {
    /// Far above any conversation: a thousand turns take less than a million steps.
    fn default() -> Self {
        Self { fuel: 50_000_000, text_bytes: 1 << 30 }
    }
}

/// A template, compiled once, to be shared by all threads.
#[derive(Debug)]
pub struct ChatTemplate {
    name: String,
    source: String,
    has_generation: bool,
    generation_is_captured: bool,
    program: Program,
    /// Compiled programs. Each is used by one thread at a time, as the engine has a lock in it.
    engines: Spares<Environment<'static>>,
}

/// What an engine is made of.
#[derive(Debug)]
struct Program {
    text: String,
    special: Vec<(String, String)>,
    limits: Limits,
}

impl Program {
    fn compile(&self) -> Result<Environment<'static>, Error> {
        let mut engine = environment(self.limits);
        for (name, token) in &self.special {
            engine.add_global(name.clone(), Value::from(token.as_str()));
        }
        engine.add_template_owned("chat", self.text.clone())?;
        Ok(engine)
    }
}

impl ChatTemplate {
    /// `special` are the variables that transformers sets for special tokens: `bos_token` and so on.
    pub fn new<'a>(
        name: &str,
        source: &str,
        special: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, TemplateError> {
        Self::with_limits(name, source, special, Limits::default())
    }

    pub fn with_limits<'a>(
        name: &str,
        source: &str,
        special: impl IntoIterator<Item = (&'a str, &'a str)>,
        limits: Limits,
    ) -> Result<Self, TemplateError> {
        let prepared = source::prepare(source);
        let special = special.into_iter().map(|(name, token)| (name.to_owned(), token.to_owned()));
        let program = Program { text: prepared.text, special: special.collect(), limits };
        let engine =
            program.compile().map_err(|error| TemplateError::from_engine(name, &error, limits.fuel))?;
        let engines = Spares::default();
        engines.leave(Box::new(engine));
        Ok(Self {
            name: name.to_owned(),
            source: source.to_owned(),
            has_generation: prepared.has_generation,
            generation_is_captured: prepared.generation_is_captured,
            program,
            engines,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the template says itself which text the model wrote.
    pub fn has_generation_blocks(&self) -> bool {
        self.has_generation
    }

    pub fn render(&self, messages: &[Message], how: &Render) -> Result<Rendered, TemplateError> {
        let Some((last, earlier)) = messages.split_last() else { return Err(TemplateError::NoMessages) };
        check_objects("tools", how.tools)?;
        check_objects("documents", how.documents)?;
        let tagged = match how.continue_final_message {
            Some(_) if how.add_generation_prompt => return Err(ContinueError::WithGenerationPrompt.into()),
            Some(field) => Some(continuation::tag(last, field, &self.source)?),
            None => None,
        };
        let last = tagged.as_ref().map_or(last, |tagged| &tagged.message);
        let list: Vec<Value> = earlier.iter().chain([last]).map(|message| message.value().clone()).collect();
        let rendered = self.run(List::new(list).into_value(), how)?;
        match tagged {
            Some(tagged) => cut(rendered, &tagged),
            None => Ok(rendered),
        }
    }

    fn run(&self, messages: Value, how: &Render) -> Result<Rendered, TemplateError> {
        let tracker = self.has_generation.then(|| self.tracker(&messages, how)).transpose()?;
        let context = Context::new(messages, how, tracker.clone())?;
        let mut writer = Writer {
            bytes: Vec::with_capacity(4096),
            limit: self.program.limits.text_bytes,
            tracker: tracker.clone(),
        };
        let make = || self.program.compile().expect("it was compiled before");
        let outcome = self.engines.with(make, |engine| {
            let template = engine.get_template("chat")?;
            template.render_captured_to(Value::from_object(context), &mut writer).map(drop)
        });
        outcome.map_err(|error| TemplateError::from_engine(&self.name, &error, self.program.limits.fuel))?;
        let text = String::from_utf8(writer.bytes).expect("the engine writes whole strings");
        let (text, generation) = match tracker {
            Some(tracker) => tracker.finish(text),
            None => (text, Vec::new()),
        };
        Ok(Rendered { text, generation })
    }

    fn tracker(&self, messages: &Value, how: &Render) -> Result<Arc<Tracker>, TemplateError> {
        if !self.generation_is_captured {
            return Ok(Tracker::counting());
        }
        let mut texts = vec![self.source.clone(), python::repr(messages)];
        texts.extend([how.tools, how.documents].into_iter().flatten().map(python::repr));
        texts.extend(how.kwargs.iter().map(|(_, value)| python::repr(value)));
        texts.extend(self.program.special.iter().map(|(_, token)| token.clone()));
        let markers = unused_markers(&texts).ok_or_else(|| TemplateError::Failed {
            name: self.name.clone(),
            line: 0,
            detail: "the messages use every character that could mark a generation block".into(),
        })?;
        Ok(Tracker::marking(markers))
    }
}

fn cut(mut rendered: Rendered, tagged: &Tagged) -> Result<Rendered, TemplateError> {
    let end = tagged.cut(&rendered.text)?;
    rendered.text.truncate(end);
    rendered.generation.retain_mut(|span| {
        span.end = span.end.min(end);
        span.start < end
    });
    Ok(rendered)
}

fn check_objects(what: &'static str, list: Option<&Value>) -> Result<(), TemplateError> {
    let Some(list) = list else { return Ok(()) };
    let items = list.downcast_object_ref::<List>().ok_or(TemplateError::NotAList { what })?.items();
    match items.iter().position(|item| item.downcast_object_ref::<Dict>().is_none()) {
        Some(index) => Err(TemplateError::NotAnObject { what, index }),
        None => Ok(()),
    }
}

fn environment(limits: Limits) -> Environment<'static> {
    let mut env = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    env.set_syntax(syntax.expect("whitespace is always valid to set"));
    env.set_undefined_behavior(UndefinedBehavior::Lenient);
    env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    env.set_fuel(Some(limits.fuel));
    env.set_recursion_limit(200);
    env.set_unknown_method_callback(methods::call);
    env.set_formatter(|out, _, value| {
        match value.as_str() {
            Some(text) => out.write_str(text)?,
            None => out.write_str(&python::str(value))?,
        }
        Ok(())
    });
    env.add_function("raise_exception", |words: Value| -> Result<Value, Error> {
        let words = python::str(&words);
        Err(Error::new(ErrorKind::InvalidOperation, words.clone()).with_source(RaisedWords(words)))
    });
    env.remove_global("debug");
    filters::install(&mut env);
    env
}

/// The variables of one render. Few enough that a walk finds them fastest.
#[derive(Debug)]
struct Context(Vec<(String, Value)>);

impl Context {
    fn new(messages: Value, how: &Render, tracker: Option<Arc<Tracker>>) -> Result<Self, TemplateError> {
        let given = |value: Option<&Value>| value.cloned().unwrap_or(Value::from(()));
        let mut variables = vec![
            ("messages".to_owned(), messages),
            ("tools".to_owned(), given(how.tools)),
            ("documents".to_owned(), given(how.documents)),
            ("add_generation_prompt".to_owned(), Value::from(how.add_generation_prompt)),
        ];
        if let Some(tracker) = tracker {
            variables.push((source::GENERATION.to_owned(), Value::from_dyn_object(tracker)));
        }
        let is_reserved = |(name, _): &&(String, Value)| variables.iter().any(|(have, _)| have == name);
        if let Some((name, _)) = how.kwargs.iter().find(is_reserved) {
            return Err(TemplateError::ReservedVariable { name: name.clone() });
        }
        variables.extend(how.kwargs.iter().cloned());
        // Last, so that a variable of this name hides it.
        variables.push(("strftime_now".to_owned(), Value::from_object(StrftimeNow(how.now))));
        Ok(Self(variables))
    }
}

impl Object for Context {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(name, _)| Value::from(name.as_str())).collect())
    }
}
