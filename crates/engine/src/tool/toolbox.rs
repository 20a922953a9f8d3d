//! The tools of a workflow, called by name.

use serde_json::value::{RawValue, to_raw_value};

use super::SharedTool;
use super::call::{Broken, ToolCall};
use crate::episode::Context;

#[derive(Clone, Debug, Default)]
pub struct ToolBox {
    tools: Vec<SharedTool>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two tools are called {name:?}; rename one")]
pub struct ToolBoxError {
    pub name: String,
}

/// What the model is told of its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    pub content: String,
    /// The call was malformed, called nothing that is there, or failed.
    pub is_error: bool,
}

impl ToolBox {
    pub fn new(tools: Vec<SharedTool>) -> Result<Self, ToolBoxError> {
        for (index, tool) in tools.iter().enumerate() {
            if tools.iter().skip(index + 1).any(|other| other.name() == tool.name()) {
                return Err(ToolBoxError { name: tool.name().to_owned() });
            }
        }
        Ok(Self { tools })
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The schemas of all, as a template and a chat engine want them; `None` if there are no tools.
    pub fn schemas(&self) -> Option<Box<RawValue>> {
        let schemas: Vec<&RawValue> = self.tools.iter().map(|tool| tool.schema()).collect();
        (!schemas.is_empty()).then(|| to_raw_value(&schemas).expect("a list of JSON is JSON"))
    }

    /// Never fails: whatever goes wrong is told to the model.
    pub async fn call(&self, call: &Result<ToolCall, Broken>, context: &Context) -> ToolResult {
        let error = |content: String| ToolResult { content: format!("Error: {content}"), is_error: true };
        let call = match call {
            Ok(call) => call,
            Err(broken) => return error(broken.reason.clone()),
        };
        let Some(tool) = self.tools.iter().find(|tool| tool.name() == call.name) else {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
            return error(format!("there is no tool {:?}; there are {}", call.name, names.join(", ")));
        };
        match tool.call(&call.arguments, context).await {
            Ok(content) => ToolResult { content, is_error: false },
            Err(failed) => error(format!("{}: {failed}", call.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CommandTool;
    use super::*;
    use crate::command::Program;
    use crate::workflow::scripted::context;
    use std::sync::Arc;
    use std::time::Duration;

    fn tool(name: &str, line: &str) -> SharedTool {
        let schema = serde_json::from_str(&format!(r#"{{"name": "{name}"}}"#)).unwrap();
        Arc::new(CommandTool::new(name, schema, Program::shell(line).with_timeout(Duration::from_secs(30))))
    }

    #[test]
    fn whatever_goes_wrong_with_a_call_is_told_to_the_model() {
        let tools = vec![
            tool("cat", "cat"),
            tool("fail", "echo oh no >&2; exit 2"),
            tool("long", "yes | head -c 99999"),
        ];
        let tools = ToolBox::new(tools).unwrap();
        assert_eq!(tools.schemas().unwrap().get(), r#"[{"name": "cat"},{"name": "fail"},{"name": "long"}]"#);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (call, expect, is_error) in [
            (r#"{"name": "cat", "arguments": {"x":  1}}"#, r#"{"x":  1}"#, false),
            (r#"{"name": "dog"}"#, "Error: there is no tool \"dog\"; there are cat, fail, long", true),
            (r#"{"name": "fail"}"#, "Error: fail: it ended with exit status: 2: oh no", true),
            ("nonsense", "Error: the call is not a JSON object", true),
        ] {
            let result = runtime.block_on(tools.call(&ToolCall::parse(call), &context()));
            assert!(result.content.starts_with(expect), "{call}: {}", result.content);
            assert_eq!(result.is_error, is_error, "{call}");
        }
        let long = runtime.block_on(tools.call(&ToolCall::parse(r#"{"name": "long"}"#), &context()));
        assert!(long.content.len() <= 16 * 1024);
    }

    #[test]
    fn two_tools_of_one_name_are_refused() {
        let error = ToolBox::new(vec![tool("a", "cat"), tool("a", "cat")]).unwrap_err();
        assert_eq!(error.to_string(), "two tools are called \"a\"; rename one");
    }
}
