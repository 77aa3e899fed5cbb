//! Runs a shell command.

use crate::text_file::failed;
use pudu_base::{
    Cut, Killed, Network, ResultOrigin, Shell, ShellCommand, ToolCx, ToolError, ToolOutput, TypedTool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

pub(crate) struct Bash {
    pub(crate) most: usize,
    pub(crate) timeout: Duration,
    pub(crate) shell: Shell,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The script that the shell runs.
    command: String,
}

const HOST: &str = "Runs a command in the shell of the machine that pudu runs on. It starts in your \
     workspace folder; reach your other folders as ../uploads and ../outputs, because /mnt/user-data is not \
     there for the shell.";
const CONFINED: &str = "Runs a command in a Linux shell of your own. It starts in /mnt/user-data/workspace; what \
     people sent is in /mnt/user-data/uploads, what they are to receive belongs in /mnt/user-data/outputs, and \
     skills, where there are any, are where you were told. Files under /mnt/user-data stay; /tmp is empty at each \
     command, and what a command leaves running ends with it.";

impl TypedTool for Bash {
    type Args = Args;
    const NAME: &'static str = "bash";
    const DESCRIPTION: &'static str = CONFINED;
    const HAS_PURPOSE: bool = true;
    const ORIGIN: ResultOrigin = ResultOrigin::Files;

    fn description(&self) -> String {
        let Shell::Confined(network) = self.shell else { return HOST.to_owned() };
        let network = match network {
            Network::None => "There is no network.",
            Network::Proxy => {
                "Of the network only certain domains can be reached, over HTTP and HTTPS, by the proxy that the \
                 environment names."
            }
            Network::Full => "There is a network.",
        };
        format!("{CONFINED} {network}")
    }

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let command = ShellCommand::new(args.command, self.timeout);
        let done = cx.sandbox.exec(&command).await.map_err(failed)?;
        let partial = done.cut;
        let mut text = done.stdout;
        if !done.stderr.is_empty() {
            text.push_str("\nStd Error:\n");
            text.push_str(&done.stderr);
        }
        match (done.code, done.killed) {
            (Some(0), _) => {}
            (Some(code), _) => text.push_str(&format!("\nExit Code: {code}")),
            (None, Some(why)) => text.push_str(&format!("\nKilled: {}", self.reason(why))),
            (None, None) => text.push_str("\nKilled by a signal, perhaps for lack of memory"),
        }
        let text = match text.trim() {
            "" => "(no output)".to_owned(),
            text => text.to_owned(),
        };
        Ok(ToolOutput { text, cut: Some(Cut::Middle(self.most)), partial, ..ToolOutput::default() })
    }
}

impl Bash {
    fn reason(&self, why: Killed) -> String {
        let mib = |bytes: u64| bytes / (1 << 20);
        match why {
            Killed::Late => format!("it ran longer than {} s", self.timeout.as_secs()),
            Killed::Memory(most) => format!("it took more than {} MiB of memory", mib(most)),
            Killed::Disk(most) => {
                let most = mib(most);
                format!("the files under /mnt/user-data take more than {most} MiB; remove what is not needed")
            }
            Killed::Uncounted => "the files under /mnt/user-data cannot be counted: there are more than a million, folders \
                                  more than 128 deep, or folders that cannot be read; remove them with the next command"
                .to_owned(),
            Killed::HostDisk => "the disk of this machine is almost full".to_owned(),
        }
    }
}
