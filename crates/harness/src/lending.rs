//! Secrets for commands: names come from the active skills, values from the user's secrets. Neither a model nor a log
//! nor a reader of a run sees the values.

use crate::RunAgent;
use pudu_base::{TaskReport, ToolError, ToolOutput, Variable};

/// Name of the tool whose commands get secrets.
const BASH: &str = "bash";

/// Returns the secrets with these names for the commands of a call.
pub(crate) fn variables_for_call(agent: &RunAgent, tool: &str, names: &[String]) -> Vec<Variable> {
    match tool == BASH && !names.is_empty() {
        true => agent.secrets.variables(names),
        false => Vec::new(),
    }
}

/// Removes the values of secrets from a call's result.
pub(crate) fn hide(agent: &RunAgent, result: Result<ToolOutput, ToolError>) -> Result<ToolOutput, ToolError> {
    match result {
        Ok(output) => {
            let task =
                output.task.map(|task| Box::new(TaskReport { text: agent.secrets.hide(task.text), ..*task }));
            Ok(ToolOutput { text: agent.secrets.hide(output.text), task, ..output })
        }
        Err(ToolError(text)) => Err(ToolError(agent.secrets.hide(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Bench, call, calls, text_reply};
    use pudu_base::{
        BoxFuture, DirEntry, Exec, RequiredSecret, Sandbox, SandboxError, SecretSource, ShellCommand, Skill,
        SkillSecrets, Tool, ToolCx, ToolSpec,
    };
    use serde_json::{Value, json};
    use std::{
        sync::{Arc, Mutex},
        time::Duration,
    };

    /// One secret whose value must not be shown.
    struct OneSecret;

    impl SecretSource for OneSecret {
        fn variables(&self, names: &[String]) -> Vec<Variable> {
            let known = names.iter().filter(|name| *name == "MAIL_KEY");
            known.map(|name| Variable { name: name.clone(), value: "hush-hush".into() }).collect()
        }

        fn hide(&self, text: String) -> String {
            text.replace("hush-hush", "[secret]")
        }
    }

    /// A sandbox that prints its variables.
    #[derive(Default)]
    struct Echo(Mutex<Vec<usize>>);

    impl Sandbox for Echo {
        fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
            let variables = &command.variables;
            self.0.lock().unwrap().push(variables.len());
            let stdout = variables.iter().map(|v| format!("{}={}\n", v.name, v.value)).collect();
            let done = Exec { stdout, stderr: String::new(), code: Some(0), killed: None, cut: false };
            Box::pin(std::future::ready(Ok(done)))
        }
        fn read<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
            Box::pin(std::future::pending())
        }
        fn write<'a>(&'a self, _: &'a str, _: &'a [u8], _: bool) -> BoxFuture<'a, Result<(), SandboxError>> {
            Box::pin(std::future::pending())
        }
        fn list<'a>(
            &'a self,
            _: &'a str,
            _: usize,
            _: usize,
        ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
            Box::pin(std::future::pending())
        }
    }

    /// Runs a command under a given tool name.
    struct CommandTool(Arc<ToolSpec>);

    impl Tool for CommandTool {
        fn spec(&self) -> &Arc<ToolSpec> {
            &self.0
        }
        fn call<'a>(&'a self, args: Value, cx: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
            Box::pin(async move {
                let command = ShellCommand::new("env".into(), Duration::from_secs(1));
                let done = cx.sandbox.exec(&command).await.map_err(|error| ToolError(error.to_string()))?;
                match args.get("fail") {
                    Some(_) => Err(ToolError(done.stdout)),
                    None => Ok(done.stdout.into()),
                }
            })
        }
    }

    async fn run_tool(asks: &str, tool: &str, args: Value) -> (String, Vec<usize>) {
        let mut bench = Bench::new(vec![calls(vec![call("1", tool, args)]), text_reply("done")]);
        let sandbox = Arc::new(Echo::default());
        let spec = Arc::new(ToolSpec {
            name: tool.into(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            idempotent: true,
        });
        bench.agent.tools = bench.agent.tools.with(Arc::new(CommandTool(spec)));
        (bench.agent.secrets, bench.agent.sandbox) = (Arc::new(OneSecret), sandbox.clone());
        let required = ["MAIL_KEY", "OTHER"].map(|name| RequiredSecret { name: name.into(), about: None });
        let skill = Skill {
            name: "mail".into(),
            about: "Sends mail.".into(),
            path: "/mnt/skills/custom/mail/SKILL.md".into(),
            tools: None,
            text: "Send it.".into(),
            secrets: SkillSecrets { required: required.into(), autonomous: false },
            ..Skill::default()
        };
        bench.skills = [skill].into();
        bench.run(Some(asks)).await;
        let text = bench.asked()[1].last().unwrap().clone();
        (text, std::mem::take(&mut *sandbox.0.lock().unwrap()))
    }

    #[tokio::test]
    async fn a_command_of_an_active_skill_gets_the_secret_and_no_reader_sees_it() {
        let counts =
            |(text, counts): (String, Vec<usize>)| (text.contains("hush"), text.contains("[secret]"), counts);
        assert_eq!(counts(run_tool("/mail go", "bash", json!({})).await), (false, true, vec![1]));
        assert_eq!(counts(run_tool("/mail go", "bash", json!({"fail": true})).await), (false, true, vec![1]));
        assert_eq!(counts(run_tool("go", "bash", json!({})).await), (false, false, vec![0]));
        assert_eq!(
            counts(run_tool("/mail go", "grep", json!({})).await),
            (false, false, vec![0]),
            "bash alone"
        );
    }
}
