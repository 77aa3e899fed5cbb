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

const HOST: &str = "Runs a command in the shell of pudu's machine. It starts in your workspace folder. Your \
                    other folders are ../uploads and ../outputs, because the shell has no /mnt/user-data.";
const CONFINED: &str = "Runs a command in your own Linux shell. It starts in /mnt/user-data/workspace. Files \
                        from users are in /mnt/user-data/uploads; put files for users into \
                        /mnt/user-data/outputs. Skills, if any, are at the paths given to you. Files under \
                        /mnt/user-data persist. /tmp is empty for each command, and background processes end \
                        with their command.";

impl TypedTool for Bash {
    type Args = Args;
    const NAME: &'static str = "bash";
    const DESCRIPTION: &'static str = CONFINED;
    const HAS_PURPOSE: bool = true;
    const ORIGIN: ResultOrigin = ResultOrigin::Files;

    fn description(&self) -> String {
        let Shell::Confined(network) = self.shell else { return HOST.to_owned() };
        let network = match network {
            Network::None => "There is no network access.",
            Network::Proxy => {
                "Network access is limited to certain domains, over HTTP and HTTPS, through the proxy in the \
                 environment variables."
            }
            Network::Full => "There is network access.",
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
            (None, None) => text.push_str("\nKilled by a signal, possibly out of memory"),
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
            Killed::Memory(most) => format!("it used more than {} MiB of memory", mib(most)),
            Killed::Disk(most) => {
                let most = mib(most);
                format!("the files under /mnt/user-data take more than {most} MiB; remove files that are not \
                         needed")
            }
            Killed::Uncounted => "the files under /mnt/user-data cannot be counted: there are more than a million, folders \
                                  more than 128 deep, or folders that cannot be read; remove them with the next command"
                .to_owned(),
            Killed::HostDisk => "the disk of this machine is almost full".to_owned(),
        }
    }
}
