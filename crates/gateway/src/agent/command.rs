//! An agent that is a program: any command line.
//!
//! It gets the data as JSON on its standard input and where to ask in its environment. What it prints last is its
//! reward; a status other than 0 is a failure. It is ended with all that it started.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rollyard_engine::command::{Program, ProgramError};
use rollyard_engine::episode::{Context, Data, EpisodeError};
use std::time::Duration;

use super::line::Filled;
use super::{Access, Agent, Line, LineError, Returned};

#[derive(Clone, Debug)]
pub struct CommandAgent {
    line: Line,
}

impl CommandAgent {
    /// A line for the shell, in which `{field}` stands for what the data says.
    pub fn new(line: &str) -> Result<Self, LineError> {
        Ok(Self { line: Line::parse(line)? })
    }

    async fn ask(&self, data: &Data, context: &Context, access: &Access) -> Result<Returned, EpisodeError> {
        let Filled { line, mut variables } = self.line.fill(data, context)?;
        variables.extend(access.variables(context));
        // How many run at once and how long is the executor's business.
        let program = Program::shell(&line).with_env(variables).with_timeout(Duration::MAX);
        match program.run(data.json().get().as_bytes()).await {
            Ok(output) => Ok(Returned::Output(output)),
            Err(ProgramError::Timeout { secs }) => Err(EpisodeError::Timeout { secs }),
            Err(error) => Err(EpisodeError::Workflow(format!("the agent failed: {error}"))),
        }
    }
}

impl Agent for CommandAgent {
    fn run<'a>(
        &'a self,
        data: &'a Data,
        context: &'a Context,
        access: &'a Access,
    ) -> BoxFuture<'a, Result<Returned, EpisodeError>> {
        self.ask(data, context, access).boxed()
    }
}
