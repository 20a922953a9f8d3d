//! A tool that is a program: the arguments on its standard input, the result on its standard output.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use super::{Tool, ToolError};
use crate::command::{Keep, Program, ProgramError};
use crate::episode::Context;

/// What a model is told of a long result.
const RESULT_BYTES: usize = 16 * 1024;

#[derive(Clone, Debug)]
pub struct CommandTool {
    name: String,
    schema: Box<RawValue>,
    program: Program,
}

impl CommandTool {
    /// The model is told the first 16 kB of what the program prints.
    pub fn new(name: &str, schema: Box<RawValue>, program: Program) -> Self {
        Self { name: name.to_owned(), schema, program: program.with_output(Keep::First(RESULT_BYTES)) }
    }

    async fn run(&self, arguments: &RawValue) -> Result<String, ToolError> {
        let output = self.program.run(arguments.get().as_bytes()).await.map_err(|error| match error {
            ProgramError::Timeout { secs } => ToolError::Timeout { secs },
            error => ToolError::Failed(error.to_string()),
        })?;
        Ok(output.trim_end().to_owned())
    }
}

impl Tool for CommandTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &RawValue {
        &self.schema
    }

    fn call<'a>(
        &'a self,
        arguments: &'a RawValue,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<String, ToolError>> {
        self.run(arguments).boxed()
    }
}
