//! A command line with places for what the data says: `my-cli --task {prompt}`.
//!
//! What is filled in never becomes part of what the shell reads: it goes into variables of the process, and the line
//! refers to those, in the way that the quotes around the place ask for. So a prompt with a `$(…)` in it is a text.

use rollyard_engine::episode::{Context, Data, EpisodeError};
use rollyard_engine::workflow::Opening;
use rollyard_engine::workflow::opening::{content, role};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent's command is empty; give one such as \"my-cli --task {{prompt}}\"")]
pub struct LineError;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place { field: String, quote: Quote },
}

/// What a place stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

/// A line with its places filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    pub line: String,
    pub variables: Vec<(String, String)>,
}

impl Line {
    /// `{name}` is a place; `${name}` is the shell's, and `{{name}}` stands for `{name}` itself.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        if text.trim().is_empty() {
            return Err(LineError);
        }
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut quote = Quote::None;
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            if let Some((field, after)) = place(rest).filter(|_| !plain.ends_with('$')) {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Place { field: field.to_owned(), quote });
                rest = after;
                continue;
            }
            if let Some((field, after)) = literal(rest) {
                plain.extend(["{", field, "}"]);
                rest = after;
                continue;
            }
            let mut left = rest.chars();
            plain.extend(left.next());
            quote = match (next, quote) {
                ('\\', Quote::None | Quote::Double) => {
                    plain.extend(left.next());
                    quote
                }
                ('\'', Quote::None) => Quote::Single,
                ('"', Quote::None) => Quote::Double,
                ('\'', Quote::Single) | ('"', Quote::Double) => Quote::None,
                _ => quote,
            };
            rest = left.as_str();
        }
        pieces.push(Piece::Text(plain));
        Ok(Self { pieces })
    }

    pub fn fill(&self, data: &Data, context: &Context) -> Result<Filled, EpisodeError> {
        let mut filled = Filled { line: String::new(), variables: Vec::new() };
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.line.push_str(text),
                Piece::Place { field, quote } => {
                    let name = format!("ROLLYARD_FIELD_{}", filled.variables.len());
                    filled.line.push_str(&match quote {
                        Quote::None => format!("\"${{{name}}}\""),
                        Quote::Double => format!("${{{name}}}"),
                        Quote::Single => format!("'\"${{{name}}}\"'"),
                    });
                    filled.variables.push((name, value(field, data, context)?));
                }
            }
        }
        Ok(filled)
    }
}

/// The name of the place that the text begins with, and what follows it.
fn place(text: &str) -> Option<(&str, &str)> {
    let (field, after) = text.strip_prefix('{')?.split_once('}')?;
    let is_name = field.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && field.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then_some((field, after))
}

fn literal(text: &str) -> Option<(&str, &str)> {
    let (field, after) = place(text.strip_prefix('{')?)?;
    Some((field, after.strip_prefix('}')?))
}

/// A field of the data; of those that it lacks we know the prompt and the task.
fn value(field: &str, data: &Data, context: &Context) -> Result<String, EpisodeError> {
    match (data.get(field), field) {
        (Some(Value::String(text)), _) => Ok(text.clone()),
        (None | Some(Value::Array(_)), "prompt") => asked(data),
        (Some(value), _) => Ok(value.to_string()),
        (None, "task_id") => Ok(context.task_id.to_string()),
        (None, _) => {
            let fields: Vec<&str> = data.fields().keys().map(String::as_str).collect();
            Err(EpisodeError::BadData(format!(
                "the agent's command has a place {{{field}}}, but the data has no such field; it has {}",
                fields.join(", ")
            )))
        }
    }
}

/// What the user says last.
fn asked(data: &Data) -> Result<String, EpisodeError> {
    let messages = Opening::read(data, None)?.messages;
    let asked = messages.iter().rfind(|message| role(message).as_deref() == Some("user"));
    let none = || {
        EpisodeError::BadData(
            "the agent's command has a place {prompt}, but no user says anything".to_owned(),
        )
    };
    asked.map(|message| content(message)).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What the shell makes of the words behind `printf`.
    fn printed(line: &str, data: &str) -> Result<Vec<String>, String> {
        let context =
            Context { run: "r".into(), task_id: 7, sample_idx: 0, attempt: 0, is_eval: false, seed: 1 };
        let line = Line::parse(&format!("printf '%s\\0' {line}")).map_err(|error| error.to_string())?;
        let data = Data::parse(data).unwrap();
        let Filled { line, variables } = line.fill(&data, &context).map_err(|error| error.to_string())?;
        let output = Command::new("sh").args(["-c", &line]).envs(variables).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        Ok(text.split_terminator('\0').map(str::to_owned).collect())
    }

    const UGLY: &str = "it's $(touch /no) `x` \"q\" \\ ;\n* {prompt} é";

    #[test]
    fn a_field_is_one_word_whatever_is_in_it_and_around_it() {
        let data = serde_json::json!({"prompt": UGLY, "n": [1, 2], "answer": "a b"}).to_string();
        for (line, expect) in [
            ("{prompt}", vec![UGLY.to_owned()]),
            ("--task={prompt} last", vec![format!("--task={UGLY}"), "last".to_owned()]),
            ("\"<{prompt}>\"", vec![format!("<{UGLY}>")]),
            ("'<{prompt}>'", vec![format!("<{UGLY}>")]),
            (r#""a \" {answer}" '{answer}'"#, vec!["a \" a b".to_owned(), "a b".to_owned()]),
            ("{n} {task_id}", vec!["[1,2]".to_owned(), "7".to_owned()]),
            (
                "'{{prompt}}' '{\"a\": {\"b\": 1}}' '{print $1}' {a,b}",
                vec![
                    "{prompt}".to_owned(),
                    "{\"a\": {\"b\": 1}}".to_owned(),
                    "{print $1}".to_owned(),
                    "{a,b}".to_owned(),
                ],
            ),
        ] {
            assert_eq!(printed(line, &data), Ok(expect), "{line}");
        }
        assert_eq!(printed("\"${HOME}x\"", "{}").unwrap().len(), 1);
    }

    #[test]
    fn a_prompt_in_messages_is_what_the_user_says_last() {
        let data = r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]}"#;
        assert_eq!(printed("{prompt}", data), Ok(vec!["hi".to_owned()]));
    }

    #[test]
    fn a_field_that_is_not_there_is_named() {
        let error = printed("{repo}", r#"{"prompt": "p", "answer": 1}"#).unwrap_err();
        assert_eq!(
            error,
            "the agent's command has a place {repo}, but the data has no such field; it has answer, prompt"
        );
        assert!(Line::parse("  ").is_err());
    }
}
