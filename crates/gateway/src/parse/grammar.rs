//! How the families of models write thoughts and calls, as a table.

use std::fmt;

use super::form::{End, Form, Marks, Thought};
use super::json::{bare, listed, objects};
use super::sections::{deepseek, kimi};
use super::tagged::{glm, qwen_coder};

/// How the model at hand writes thoughts and calls.
#[derive(Clone, Copy)]
pub struct Grammar {
    family: &'static Family,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no grammar is called {name:?}; there are {}", Grammar::names().join(", "))]
pub struct UnknownGrammar {
    pub name: String,
}

struct Family {
    name: &'static str,
    syntax: Syntax,
}

pub(super) enum Syntax {
    Marks(Marks),
    /// Messages on channels, as gpt-oss writes them.
    Channels,
}

impl Grammar {
    pub fn named(name: &str) -> Result<Self, UnknownGrammar> {
        let family = FAMILIES.iter().find(|family| family.name == name);
        family.map(|family| Self { family }).ok_or_else(|| UnknownGrammar { name: name.to_owned() })
    }

    /// From the marks that a chat template writes. A template without any gives `none`.
    pub fn of_template(template: &str) -> Self {
        let has = |mark: &str| template.contains(mark);
        let thinks = has("<think>") || has("</think>");
        let name = if has("<|channel|>") && has("<|message|>") {
            "harmony"
        } else if has("<|tool_calls_section_begin|>") {
            "kimi_k2"
        } else if has("<｜tool▁calls▁begin｜>") {
            match (has("```json"), thinks) {
                (true, true) => "deepseek_r1",
                (true, false) => "deepseek_v3",
                (false, _) => "deepseek_v31",
            }
        } else if has("[TOOL_CALLS]") {
            "mistral"
        } else if has("<|python_tag|>") || has("<|start_header_id|>") && has("\"parameters\":") {
            "llama3"
        } else if has("<arg_key>") {
            "glm45"
        } else if has("<function=") && has("<parameter=") {
            "qwen3_coder"
        } else if has("<tool_call>") {
            if thinks { "qwen" } else { "hermes" }
        } else if thinks {
            "think"
        } else {
            "none"
        };
        Self::named(name).expect("the names above are in the table")
    }

    /// All there are.
    pub fn names() -> Vec<&'static str> {
        FAMILIES.iter().map(|family| family.name).collect()
    }

    pub fn name(&self) -> &str {
        self.family.name
    }

    pub(super) fn syntax(&self) -> &'static Syntax {
        &self.family.syntax
    }
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Grammar").field(&self.family.name).finish()
    }
}

const THINK: Option<Thought> = Some(Thought { open: "<think>", close: "</think>" });

const NOTHING: Marks = Marks { thought: None, forms: &[], bare: None, sections: &[] };

const TOOL_CALL: Marks = Marks {
    thought: THINK,
    forms: &[Form { open: "<tool_call>", end: End::Mark("</tool_call>"), read: objects }],
    ..NOTHING
};

const DEEPSEEK: Marks = Marks {
    thought: THINK,
    forms: &[Form {
        open: "<｜tool▁call▁begin｜>", end: End::Mark("<｜tool▁call▁end｜>"), read: deepseek
    }],
    sections: &["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
    ..NOTHING
};

static FAMILIES: [Family; 13] = [
    Family { name: "none", syntax: Syntax::Marks(NOTHING) },
    Family { name: "think", syntax: Syntax::Marks(Marks { thought: THINK, ..NOTHING }) },
    Family { name: "qwen", syntax: Syntax::Marks(TOOL_CALL) },
    Family { name: "hermes", syntax: Syntax::Marks(TOOL_CALL) },
    Family {
        name: "qwen3_coder",
        syntax: Syntax::Marks(Marks {
            forms: &[Form { open: "<tool_call>", end: End::Mark("</tool_call>"), read: qwen_coder }],
            ..TOOL_CALL
        }),
    },
    Family {
        name: "llama3",
        syntax: Syntax::Marks(Marks {
            thought: THINK,
            forms: &[Form { open: "<|python_tag|>", end: End::Json, read: objects }],
            bare: Some(&Form { open: "", end: End::Json, read: bare }),
            ..NOTHING
        }),
    },
    Family { name: "deepseek_v3", syntax: Syntax::Marks(Marks { thought: None, ..DEEPSEEK }) },
    Family { name: "deepseek_v31", syntax: Syntax::Marks(DEEPSEEK) },
    Family { name: "deepseek_r1", syntax: Syntax::Marks(DEEPSEEK) },
    Family {
        name: "mistral",
        syntax: Syntax::Marks(Marks {
            thought: Some(Thought { open: "[THINK]", close: "[/THINK]" }),
            forms: &[Form { open: "[TOOL_CALLS]", end: End::NamedJson, read: listed }],
            ..NOTHING
        }),
    },
    Family {
        name: "glm45",
        syntax: Syntax::Marks(Marks {
            forms: &[Form { open: "<tool_call>", end: End::Mark("</tool_call>"), read: glm }],
            ..TOOL_CALL
        }),
    },
    Family {
        name: "kimi_k2",
        syntax: Syntax::Marks(Marks {
            thought: THINK,
            forms: &[Form { open: "<|tool_call_begin|>", end: End::Mark("<|tool_call_end|>"), read: kimi }],
            sections: &["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"],
            ..NOTHING
        }),
    },
    Family { name: "harmony", syntax: Syntax::Channels },
];
