//! A tool that is a function in Python: called with the model's arguments by name.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::time::Duration;
use tokio::time::timeout;

use super::frame::Load;
use super::{Host, HostError};
use crate::episode::Context;
use crate::tool::{Tool, ToolError};

/// Tells a function's name and schema by its signature.
const DESCRIBE: &str = "rollyard.tools.describe";

/// `module.function`, imported by each worker; `async` or not.
#[derive(Debug)]
pub struct PythonTool {
    host: Host,
    handle: u64,
    name: String,
    schema: Box<RawValue>,
    timeout: Duration,
}

impl PythonTool {
    /// The function's name, docstring and types make the schema, unless it has an attribute `schema`.
    pub async fn load(host: Host, path: &str, timeout: Duration) -> Result<Self, HostError> {
        #[derive(Deserialize)]
        struct Schema {
            function: Function,
        }
        #[derive(Deserialize)]
        struct Function {
            name: String,
        }
        let handle = host.load(Load::Function { path: path.to_owned() }).await?;
        let describe = host.load(Load::Function { path: DESCRIBE.to_owned() }).await?;
        let unclear = |error: serde_json::Error| HostError::Load(format!("the schema of {path}: {error}"));
        let arguments = to_raw_value(&serde_json::json!({"args": [path], "kwargs": {}})).map_err(unclear)?;
        let schema = host.call(describe, &arguments).await?;
        let Schema { function: Function { name } } = serde_json::from_str(schema.get()).map_err(unclear)?;
        Ok(Self { host, handle, name, schema, timeout })
    }

    async fn run(&self, arguments: &RawValue) -> Result<String, ToolError> {
        let arguments = match serde_json::from_str(arguments.get()) {
            Ok(Value::Object(named)) => serde_json::json!({"args": [], "kwargs": named}),
            _ => return Err(ToolError::BadArguments(format!("{} takes its arguments by name", self.name))),
        };
        let arguments = to_raw_value(&arguments).map_err(|error| ToolError::Failed(error.to_string()))?;
        let secs = self.timeout.as_secs_f64();
        let asked = timeout(self.timeout, self.host.call(self.handle, &arguments)).await;
        let value = asked.map_err(|_| ToolError::Timeout { secs })?;
        let value = value.map_err(|error| ToolError::Failed(error.to_string()))?;
        // Text as it is, everything else as JSON.
        Ok(serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned()))
    }
}

impl Tool for PythonTool {
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
        Box::pin(self.run(arguments))
    }
}
