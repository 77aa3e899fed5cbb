//! Runs a shell command.

use crate::{cut, failed};
use pudu_base::{Command, ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

pub(crate) struct Bash {
    pub(crate) most: usize,
    pub(crate) timeout: Duration,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// What the shell runs.
    command: String,
}

impl TypedTool for Bash {
    type Args = Args;
    const NAME: &'static str = "bash";
    const ABOUT: &'static str = "Runs a command in the shell of the machine that pudu runs on. It starts in your \
         workspace folder; reach your other folders as ../uploads and ../outputs, because /mnt/user-data is not \
         there for the shell.";

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let command = Command { script: args.command, timeout: self.timeout };
        let done = cx.sandbox.exec(&command).await.map_err(failed)?;
        let mut text = done.stdout;
        if !done.stderr.is_empty() {
            text.push_str("\nStd Error:\n");
            text.push_str(&done.stderr);
        }
        match done.code {
            Some(0) => {}
            Some(code) => text.push_str(&format!("\nExit Code: {code}")),
            None if done.late => {
                text.push_str(&format!("\nKilled: it ran longer than {} s", self.timeout.as_secs()));
            }
            None => text.push_str("\nKilled by a signal, perhaps for lack of memory"),
        }
        let text = text.trim();
        Ok(if text.is_empty() { "(no output)".to_owned() } else { cut::middle(text, self.most) }.into())
    }
}
