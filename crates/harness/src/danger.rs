//! Tells a dangerous shell command by its text, for those who want to be asked first.
//!
//! Deliberately no boundary: a command can be spelled in endless ways. What this finds is what a hasty model
//! writes, not what an attacker does; those the sandbox stops. What other languages do is not looked at.

mod path;
mod script;
#[cfg(test)]
mod tests;
mod word;
mod wrapped;

use script::{Command, DEEP};
use word::Word;
use wrapped::Bare;

/// Shells, which run what they are given as text.
const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ash", "ksh", "fish"];
/// Other programs that run what comes through a pipe.
const INTERPRETERS: [&str; 5] = ["perl", "ruby", "node", "php", "deno"];
/// Programs that fetch from the network.
const FETCHERS: [&str; 2] = ["curl", "wget"];
/// What `systemctl` does that only looks.
const LOOKS: [&str; 7] =
    ["status", "show", "cat", "is-active", "is-enabled", "list-units", "list-unit-files"];
/// A command is no longer, in bytes; what is longer has to be looked at.
const LONGEST: usize = 10_000;
/// Commands that are substituted in each other, so deep; what is deeper has to be looked at.
const DEEPEST: usize = 32;

const DELETES: &str = "it deletes whole folders";
const DELETES_FOUND: &str = "it deletes whatever it finds";
const FETCHES: &str = "it runs what it fetches";
const OVERWRITES: &str = "it overwrites a disk or a file for good";
const LATER: &str = "it makes something run later";
const WRITES: &str = "it writes where the system lives";

/// Says in a few words why a command is dangerous; `None` if nothing was found.
#[must_use]
pub(crate) fn find(script: &str) -> Option<&'static str> {
    if script.len() > LONGEST {
        return Some("it is too long to look through");
    }
    let compact: String = script.split_whitespace().collect();
    if compact.contains(":(){:|:&};:") || compact.contains("|:&}") {
        return Some("it multiplies without end");
    }
    look(script, DEEPEST)
}

/// Looks through a script.
fn look(script: &str, depth: usize) -> Option<&'static str> {
    let Some(depth) = depth.checked_sub(1) else { return Some(DEEP) };
    match script::read(script, depth) {
        Ok(commands) => all(&commands, depth),
        Err(why) => Some(why),
    }
}

/// Where the input of a command comes from.
#[derive(Clone, Debug)]
enum Origin {
    Fetched,
    Hidden,
    Said(String),
}

/// Looks at commands, each with what the one before gives it.
fn all(commands: &[Command], depth: usize) -> Option<&'static str> {
    let mut fed = None;
    for command in commands {
        let nested = command.words.iter().map(|word| &word.inner).chain([&command.inner]);
        let found = nested.into_iter().find_map(|inner| all(inner, depth));
        let found = found.or_else(|| one(command, fed.as_ref(), depth));
        if found.is_some() {
            return found;
        }
        fed = match fed {
            _ if !command.piped => None,
            Some(Origin::Fetched | Origin::Hidden) => fed,
            _ => origin(command).or(fed),
        };
    }
    None
}

/// Says what a command writes for the next one.
fn origin(command: &Command) -> Option<Origin> {
    let bare = Bare::new(&command.words);
    match bare.program()? {
        name if FETCHERS.contains(&name) => Some(Origin::Fetched),
        "base64" | "xxd" => Some(Origin::Hidden),
        "echo" | "printf" => Some(Origin::Said(texts(bare.arguments()).collect::<Vec<_>>().join(" "))),
        "cat" => command.input.clone().map(Origin::Said),
        _ => None,
    }
}

fn texts(words: &[Word]) -> impl Iterator<Item = &str> {
    words.iter().map(|word| word.text.as_str())
}

/// Looks at one simple command.
fn one(command: &Command, fed: Option<&Origin>, depth: usize) -> Option<&'static str> {
    let Command { words, targets, sources, .. } = command;
    if targets.iter().chain(sources).any(|file| path::is_connection(file)) {
        return Some("it opens a connection of its own");
    }
    if targets.iter().any(|target| path::is_guarded(target)) {
        return Some(WRITES);
    }
    let bare = Bare::new(words);
    if bare.rights {
        return Some("it asks for more rights");
    }
    let reads = || sources.iter().any(|file| path::is_secret(file)).then_some("it reads secrets");
    given(&bare, command, fed, depth).or_else(|| act(&bare, depth)).or_else(reads)
}

/// Looks at what an interpreter is given to run.
fn given(bare: &Bare<'_>, command: &Command, fed: Option<&Origin>, depth: usize) -> Option<&'static str> {
    let program = bare.program()?;
    let shell = SHELLS.contains(&program);
    if matches!(program, "source" | ".") {
        return bare.arguments().first().filter(|file| fetched(file)).map(|_| FETCHES);
    }
    if !(shell || INTERPRETERS.contains(&program) || program.starts_with("python")) {
        return None;
    }
    let option = |word: &&Word| word.text.starts_with(['-', '+']) && word.text.len() > 1;
    let options = bare.arguments().iter().take_while(option).count();
    let (options, operands) = bare.arguments().split_at(options);
    let text = texts(options).any(|word| !word.starts_with("--") && word.contains('c'));
    let input = !texts(options).any(|word| matches!(word, "-c" | "-m" | "-e" | "-r"));
    match operands.first() {
        Some(code) if fetched(code) => Some(FETCHES),
        Some(code) if shell && text => look(&code.text, depth),
        Some(file) if file.text != "-" && file.text != "/dev/stdin" && !texts(options).any(|w| w == "-s") => {
            None
        }
        _ if !input => None,
        _ => stream(shell, command.input.as_deref(), fed, depth),
    }
}

/// Looks at the input that an interpreter runs.
fn stream(shell: bool, input: Option<&str>, fed: Option<&Origin>, depth: usize) -> Option<&'static str> {
    match (input, fed) {
        (Some(script), _) => shell.then(|| look(script, depth)).flatten(),
        (None, Some(Origin::Fetched)) => Some(FETCHES),
        (None, Some(Origin::Hidden)) => Some("it runs what it hides"),
        (None, Some(Origin::Said(script))) => shell.then(|| look(script, depth)).flatten(),
        (None, None) => None,
    }
}

/// Tells whether what stands there comes from the network.
fn fetched(word: &Word) -> bool {
    word.inner.iter().any(|command| matches!(origin(command), Some(Origin::Fetched)))
}

/// Looks at what a program does.
fn act(bare: &Bare<'_>, depth: usize) -> Option<&'static str> {
    let arguments = || texts(bare.arguments());
    let operands = || arguments().filter(|word| !word.starts_with('-'));
    let flag = |short: char, long: &str| {
        arguments().any(|word| {
            word == long || (word.starts_with('-') && !word.starts_with("--") && word.contains(short))
        })
    };
    match bare.program()? {
        "rm" if flag('r', "--recursive") || flag('R', "--recursive") => {
            (bare.fed || operands().any(path::is_broad)).then_some(DELETES)
        }
        "rm" => operands().any(path::is_guarded).then_some(WRITES),
        "find" => finds(bare, depth),
        "dd" | "mkfs" | "fdisk" | "parted" | "wipefs" | "shred" => Some(OVERWRITES),
        name if name.starts_with("mkfs.") => Some(OVERWRITES),
        "tee" | "truncate" => operands().any(path::is_guarded).then_some(WRITES),
        "cp" | "mv" | "ln" | "install" if operands().last().is_some_and(path::is_guarded) => Some(WRITES),
        "shutdown" | "reboot" | "halt" | "poweroff" => Some("it stops the machine"),
        "chmod" | "chown" if flag('R', "--recursive") => Some("it changes who may do what, everywhere below"),
        "kill" if arguments().skip(1).any(|word| word == "-1") => Some("it ends every process"),
        "pkill" | "killall" if operands().any(|word| word == "." || word == ".*") => {
            Some("it ends every process")
        }
        "git" if pushes_by_force(arguments()) => Some("it overwrites what others see"),
        "crontab" if arguments().eq(["-l"]) => None,
        "systemctl" if operands().next().is_none_or(|word| LOOKS.contains(&word)) => None,
        "crontab" | "at" | "systemctl" => Some(LATER),
        "eval" => Some("it runs a text that is put together only then"),
        "echo" | "printf" => None,
        _ => texts(bare.words).any(path::is_secret).then_some("it reads secrets"),
    }
}

/// Looks at what `find` does with what it finds.
fn finds(bare: &Bare<'_>, depth: usize) -> Option<&'static str> {
    let mut rest = bare.arguments();
    if texts(rest).any(|word| word == "-delete") {
        return Some(DELETES_FOUND);
    }
    while let Some(at) = texts(rest).position(|word| matches!(word, "-exec" | "-execdir" | "-ok" | "-okdir"))
    {
        rest = rest.get(at + 1..).unwrap_or_default();
        let run = Bare::new(rest);
        match run.program() {
            _ if run.rights => return Some("it asks for more rights"),
            Some("rm" | "unlink") => return Some(DELETES_FOUND),
            Some("shred") => return Some(OVERWRITES),
            _ => {}
        }
        let end = texts(rest).position(|word| word == ";" || word == "+").unwrap_or(rest.len());
        let command = Command {
            words: rest.iter().take(end).map(|word| Word::new(&word.text)).collect(),
            ..Command::default()
        };
        if let Some(found) = given(&Bare::new(&command.words), &command, None, depth) {
            return Some(found);
        }
    }
    None
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
