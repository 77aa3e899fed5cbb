//! Finds dangerous shell commands by their text, for approvals and for scans of untrusted skills.
//!
//! This is not a security boundary, because a command can be spelled in countless ways. It finds the commands of a
//! careless model, not those of an attacker, which the sandbox stops. Code in other languages is not examined.

mod kind;
mod path;
#[cfg(test)]
mod tests;

pub use kind::Danger;

use crate::{
    MAX_SCRIPT_BYTES, MAX_SUBSTITUTION_DEPTH, SHELLS, UnreadScript, script,
    syntax::{ParsedCommand, ShellWord},
    wrapped::{self, Bare},
};

/// Interpreters other than shells and Python that run code from a pipe.
const INTERPRETERS: [&str; 5] = ["perl", "ruby", "node", "php", "deno"];
/// Programs that fetch from the network.
const FETCHERS: [&str; 2] = ["curl", "wget"];
/// Subcommands of `systemctl` that change nothing.
const READ_ONLY_SUBCOMMANDS: [&str; 7] =
    ["status", "show", "cat", "is-active", "is-enabled", "list-units", "list-unit-files"];

/// Returns the worst danger in a script; `None` if there is none.
#[must_use]
pub fn find(script: &str) -> Option<Danger> {
    if script.len() > MAX_SCRIPT_BYTES {
        return Some(Danger::Unread(UnreadScript::Long));
    }
    let compact: String = script.split_whitespace().collect();
    if compact.contains(":(){:|:&};:") || compact.contains("|:&}") {
        return Some(Danger::Multiplies);
    }
    find_in_script(script, MAX_SUBSTITUTION_DEPTH)
}

/// Returns the worst danger in a script. `depth` limits further nesting.
fn find_in_script(script: &str, depth: usize) -> Option<Danger> {
    let Some(depth) = depth.checked_sub(1) else { return Some(Danger::Unread(UnreadScript::Deep)) };
    match script::read(script, depth) {
        Ok(script) => all(&script.commands, depth),
        Err(why) => Some(Danger::Unread(why)),
    }
}

/// Origin of a command's input.
#[derive(Clone, Debug)]
enum Origin {
    Fetched,
    Hidden,
    Said(String),
}

/// Examines commands in order, each with the origin of its piped input.
fn all(commands: &[ParsedCommand], depth: usize) -> Option<Danger> {
    let (mut fed, mut worst) = (None, None);
    for command in commands {
        let nested = command.nested().filter_map(|inner| all(inner, depth)).max();
        worst = worst.max(nested).max(check_command(command, fed.as_ref(), depth));
        fed = match fed {
            _ if !command.piped => None,
            Some(Origin::Fetched | Origin::Hidden) => fed,
            _ => origin(command).or(fed),
        };
    }
    worst
}

/// Returns the origin of a command's output, if known.
fn origin(command: &ParsedCommand) -> Option<Origin> {
    let bare = Bare::new(&command.words);
    match bare.program()? {
        name if FETCHERS.contains(&name) => Some(Origin::Fetched),
        "base64" | "xxd" => Some(Origin::Hidden),
        "echo" | "printf" => Some(Origin::Said(texts(bare.arguments()).collect::<Vec<_>>().join(" "))),
        "cat" => command.input.clone().map(Origin::Said),
        _ => None,
    }
}

fn texts(words: &[ShellWord]) -> impl Iterator<Item = &str> {
    words.iter().map(|word| word.text.as_str())
}

/// Examines one simple command.
fn check_command(command: &ParsedCommand, fed: Option<&Origin>, depth: usize) -> Option<Danger> {
    let ParsedCommand { words, targets, sources, .. } = command;
    if targets.iter().chain(sources).any(|file| path::is_connection(file)) {
        return Some(Danger::Connects);
    }
    if targets.iter().any(|target| path::is_protected(target)) {
        return Some(Danger::Writes);
    }
    let bare = Bare::new(words);
    if bare.rights {
        return Some(Danger::Rights);
    }
    let reads = || sources.iter().any(|file| path::is_secret(file)).then_some(Danger::Secrets);
    check_interpreter(&bare, command, fed, depth).or_else(|| check_program(&bare, depth)).or_else(reads)
}

/// Examines the code or file that an interpreter runs.
fn check_interpreter(
    bare: &Bare<'_>,
    command: &ParsedCommand,
    fed: Option<&Origin>,
    depth: usize,
) -> Option<Danger> {
    let program = bare.program()?;
    let shell = SHELLS.contains(&program);
    if matches!(program, "source" | ".") {
        return bare.arguments().first().filter(|file| fetched(file)).map(|_| Danger::Fetches);
    }
    if !(shell || INTERPRETERS.contains(&program) || program.starts_with("python")) {
        return None;
    }
    let (options, operands) = wrapped::options(bare.arguments());
    let input = !texts(options).any(|word| matches!(word, "-c" | "-m" | "-e" | "-r"));
    match operands.first() {
        Some(code) if fetched(code) => Some(Danger::Fetches),
        Some(code) if shell && wrapped::takes_script(options) => find_in_script(&code.text, depth),
        Some(file) if file.text != "-" && file.text != "/dev/stdin" && !texts(options).any(|w| w == "-s") => {
            None
        }
        _ if !input => None,
        _ => stream(shell, command.input.as_deref(), fed, depth),
    }
}

/// Examines the input that an interpreter runs.
fn stream(shell: bool, input: Option<&str>, fed: Option<&Origin>, depth: usize) -> Option<Danger> {
    match (input, fed) {
        (Some(script), _) => shell.then(|| find_in_script(script, depth)).flatten(),
        (None, Some(Origin::Fetched)) => Some(Danger::Fetches),
        (None, Some(Origin::Hidden)) => Some(Danger::Hides),
        (None, Some(Origin::Said(script))) => shell.then(|| find_in_script(script, depth)).flatten(),
        (None, None) => None,
    }
}

/// Returns whether a word's value comes from the network.
fn fetched(word: &ShellWord) -> bool {
    word.inner.iter().any(|command| matches!(origin(command), Some(Origin::Fetched)))
}

/// Examines the effect of a program.
fn check_program(bare: &Bare<'_>, depth: usize) -> Option<Danger> {
    let arguments = || texts(bare.arguments());
    let operands = || arguments().filter(|word| !word.starts_with('-'));
    let flag = |short: char, long: &str| {
        arguments().any(|word| {
            word == long || (word.starts_with('-') && !word.starts_with("--") && word.contains(short))
        })
    };
    match bare.program()? {
        "rm" if flag('r', "--recursive") || flag('R', "--recursive") => {
            (bare.fed || operands().any(path::is_broad)).then_some(Danger::Deletes)
        }
        "rm" => operands().any(path::is_protected).then_some(Danger::Writes),
        "find" => finds(bare, depth),
        "dd" | "mkfs" | "fdisk" | "parted" | "wipefs" | "shred" => Some(Danger::Overwrites),
        name if name.starts_with("mkfs.") => Some(Danger::Overwrites),
        "tee" | "truncate" => operands().any(path::is_protected).then_some(Danger::Writes),
        "cp" | "mv" | "ln" | "install" if operands().last().is_some_and(path::is_protected) => {
            Some(Danger::Writes)
        }
        "shutdown" | "reboot" | "halt" | "poweroff" => Some(Danger::Stops),
        "chmod" | "chown" if flag('R', "--recursive") => Some(Danger::Modes),
        "kill" if arguments().skip(1).any(|word| word == "-1") => Some(Danger::Kills),
        "pkill" | "killall" if operands().any(|word| word == "." || word == ".*") => Some(Danger::Kills),
        "git" if pushes_by_force(arguments()) => Some(Danger::Pushes),
        "crontab" if arguments().eq(["-l"]) => None,
        "systemctl" if operands().next().is_none_or(|word| READ_ONLY_SUBCOMMANDS.contains(&word)) => None,
        "crontab" | "at" | "systemctl" => Some(Danger::Later),
        "eval" => Some(Danger::Evaluates),
        "echo" | "printf" => None,
        _ => texts(bare.words).any(path::is_secret).then_some(Danger::Secrets),
    }
}

/// Examines what `find` does with its results.
fn finds(bare: &Bare<'_>, depth: usize) -> Option<Danger> {
    if texts(bare.arguments()).any(|word| word == "-delete") {
        return Some(Danger::DeletesFound);
    }
    wrapped::found_commands(bare.arguments()).find_map(|rest| {
        let run = Bare::new(rest);
        match run.program() {
            _ if run.rights => return Some(Danger::Rights),
            Some("rm" | "unlink") => return Some(Danger::DeletesFound),
            Some("shred") => return Some(Danger::Overwrites),
            _ => {}
        }
        let command = ParsedCommand {
            words: wrapped::until_end(rest).iter().map(|word| ShellWord::new(&word.text)).collect(),
            ..ParsedCommand::default()
        };
        check_interpreter(&Bare::new(&command.words), &command, None, depth)
    })
}

fn pushes_by_force<'a>(mut arguments: impl Iterator<Item = &'a str>) -> bool {
    while let Some(word) = arguments.next() {
        match word {
            "-C" | "-c" => drop(arguments.next()),
            "push" => {
                return arguments
                    .any(|word| word == "-f" || word.starts_with("--force") || word.starts_with('+'));
            }
            word if word.starts_with('-') => {}
            _ => return false,
        }
    }
    false
}
