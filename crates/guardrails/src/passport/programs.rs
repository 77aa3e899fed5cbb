//! Decides whether a script runs only allowed programs. Anything uncertain is denied.

use super::script::{PlainCommand, PlainReader, PlainWord};

/// Entry that allows any command.
const ANY: &str = "*";
/// Maximum number of nested programs that run another command.
const MAX_LAYERS: usize = 16;

/// Shell builtins without side effects.
const HARMLESS: [&str; 11] =
    ["cd", "pwd", "true", "false", ":", "test", "[", "[[", "exit", "break", "continue"];
/// Folders of system programs.
const FOLDERS: [&str; 5] = ["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"];
/// Shells whose scripts are understood here.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "ash"];
/// Options of shells before a script.
const TEXT_OPTIONS: [&str; 4] = ["-c", "-lc", "-ec", "-euc"];
/// Programs that set variables, evaluate expressions, or run commands from their arguments or input in their own way.
/// Even if allowed, the programs that they run are uncertain.
/// they are allowed, it is not certain what they run.
const UNCERTAIN: [&str; 42] = [
    ".",
    "alias",
    "bind",
    "compgen",
    "complete",
    "coproc",
    "declare",
    "enable",
    "eval",
    "export",
    "fc",
    "getopts",
    "hash",
    "jobs",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unset",
    "wait", // builtins of a shell
    "zsh",
    "ksh",
    "fish",
    "doas",
    "ionice",
    "stdbuf",
    "chroot",
    "flock",
    "watch",
    "strace",
    "unshare",
    "busybox",
    "caffeinate",
    "parallel",
    "script",
];
/// Operators of `test` for one word, and for two.
const ASKS_ONE: [&str; 11] = ["-e", "-f", "-d", "-r", "-w", "-x", "-s", "-z", "-n", "-L", "-h"];
const ASKS_TWO: [&str; 9] = ["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// Parts of lower-case variable names that control programs nevertheless.
const STEERING: [&str; 4] = ["proxy", "npm_", "histchars", "auto_resume"];

/// A program that runs another command.
struct PassingProgram {
    name: &'static str,
    /// Options without a value, and options with a value in the next word.
    flags: &'static str,
    valued: &'static str,
    /// Number of its own arguments before the command.
    operands: usize,
    /// Whether it sets variables.
    sets: bool,
}

const fn passing(name: &'static str, flags: &'static str, valued: &'static str) -> PassingProgram {
    PassingProgram { name, flags, valued, operands: 0, sets: false }
}

const PASSING: [PassingProgram; 11] = [
    passing("nohup", "", ""),
    passing("nice", "", "n"),
    passing("time", "p", ""),
    PassingProgram { operands: 1, ..passing("timeout", "", "ks") },
    passing("xargs", "0rt", "nPLI"),
    PassingProgram { sets: true, ..passing("env", "i", "") },
    PassingProgram { sets: true, ..passing("sudo", "nE", "u") },
    passing("command", "p", ""),
    passing("builtin", "", ""),
    passing("exec", "", ""),
    passing("setsid", "", ""),
];

type Verdict = Result<(), String>;

/// Checks that a script runs only allowed programs; the error is the reason.
pub(super) fn check(allowed: &[String], script: &str) -> Verdict {
    if allowed.iter().any(|entry| entry == ANY) {
        return Ok(());
    }
    ProgramList { allowed }.script(script, MAX_LAYERS)
}

/// A command that is run by other programs.
#[derive(Clone, Copy)]
struct Layer<'a> {
    words: &'a [PlainWord],
    /// Whether the program before it appends words.
    is_fed: bool,
    /// Maximum number of further layers.
    left: usize,
}

/// The allowed programs.
struct ProgramList<'a> {
    allowed: &'a [String],
}

impl ProgramList<'_> {
    fn script(&self, script: &str, left: usize) -> Verdict {
        let commands = PlainReader::read(script)
            .map_err(|what| format!("it cannot be told which programs the command runs: it has {what}"))?;
        commands.iter().try_for_each(|command| self.command(command, left))
    }

    fn command(&self, command: &PlainCommand, left: usize) -> Verdict {
        let words = command.words.as_slice();
        if let [head, rest @ ..] = words
            && head.text == "for"
            && !head.is_quoted
            && command.arrows == 0
        {
            return loop_head(rest);
        }
        let set: Vec<_> = words.iter().map_while(|word| Some((word, word.variable()?))).collect();
        let words = words.get(set.len()..).unwrap_or_default();
        set.into_iter().try_for_each(|(word, name)| variable(word, name, words.is_empty()))?;
        self.program(Layer { words, is_fed: false, left })
    }

    fn program(&self, layer: Layer<'_>) -> Verdict {
        let Some(program) = layer.words.first() else { return Ok(()) };
        let left = layer.left.checked_sub(1).ok_or("too many programs pass a command on")?;
        if !program.is_fixed() {
            return Err("it is only known later which program the command runs".to_owned());
        }
        let name = program.text.rsplit('/').next().unwrap_or_default();
        if UNCERTAIN.contains(&name) {
            return Err(format!("{name} may run any program"));
        }
        self.listed(layer.words)?;
        let inner = Layer { words: layer.words.get(1..).unwrap_or_default(), left, ..layer };
        let certain = match name {
            "test" | "[" | "[[" => !layer.is_fed && is_plain_test(name, inner.words),
            "printf" => !layer.is_fed && inner.words.first().is_some_and(is_plain_format),
            "find" => return self.found(inner),
            name if SHELLS.contains(&name) => return self.shell(inner),
            name => match PASSING.iter().find(|passing| passing.name == name) {
                Some(passing) => return self.passed(passing, inner),
                None => true,
            },
        };
        if certain { Ok(()) } else { Err(uncertain(name)) }
    }

    /// Checks that a program is allowed with its arguments.
    fn listed(&self, words: &[PlainWord]) -> Verdict {
        let program = words.first().map(|word| word.text.as_str()).unwrap_or_default();
        let name = match program.rsplit_once('/') {
            Some((folder, name)) if FOLDERS.contains(&folder) => name,
            _ => program,
        };
        let begins = |entry: &String| {
            let mut listed = entry.split_whitespace();
            let first = listed.next().is_some_and(|first| first == name || first == program);
            let mut rest = words.iter().skip(1);
            first && listed.all(|own| rest.next().is_some_and(|word| word.is_fixed() && word.text == own))
        };
        if HARMLESS.contains(&name) || self.allowed.iter().any(begins) {
            return Ok(());
        }
        Err(format!("the agent's passport does not allow the command {name}"))
    }

    /// Checks a command that is run by another program.
    fn passed(&self, passing: &PassingProgram, mut layer: Layer<'_>) -> Verdict {
        let unclear = || uncertain(passing.name);
        let is_question = |word: &PlainWord| word.is_fixed() && matches!(word.text.as_str(), "-v" | "-V");
        if layer.is_fed {
            return Err(unclear());
        }
        if passing.name == "command" && layer.words.first().is_some_and(is_question) {
            return Ok(());
        }
        while let Some(option) = layer.words.first().filter(|word| word.text.starts_with('-')) {
            let mut letters = option.text.chars().skip(1);
            let letter = letters.next().filter(|_| option.is_fixed()).ok_or_else(unclear)?;
            let own = match letters.next() {
                None if passing.flags.contains(letter) => 1,
                None if passing.valued.contains(letter) => 2,
                _ => return Err(unclear()),
            };
            // Another placeholder could also replace the program's name.
            let fits = |value: &PlainWord| is_operand(value) && (letter != 'I' || value.text == "{}");
            if own == 2 && !layer.words.get(1).is_some_and(fits) {
                return Err(unclear());
            }
            layer.words = layer.words.get(own..).unwrap_or_default();
        }
        while let Some(word) = layer.words.first().filter(|word| passing.sets && word.text.contains('=')) {
            variable(word, word.variable().ok_or_else(unclear)?, false)?;
            if word.is_split {
                return Err(unclear());
            }
            layer.words = layer.words.get(1..).unwrap_or_default();
        }
        if !layer.words.iter().take(passing.operands).all(is_operand) {
            return Err(unclear());
        }
        layer.words = layer.words.get(passing.operands..).unwrap_or_default();
        self.program(Layer { is_fed: passing.name == "xargs", ..layer })
    }

    /// Checks the commands that `find` runs.
    fn found(&self, layer: Layer<'_>) -> Verdict {
        // A word that is unknown until run time could be `-exec`.
        let is_certain =
            |word: &PlainWord| word.is_fixed() || (!word.is_split && !word.text.starts_with(['-', '$']));
        if layer.is_fed || !layer.words.iter().all(is_certain) {
            return Err(uncertain("find"));
        }
        let runs = |word: &PlainWord| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
        let mut rest = layer.words;
        while let Some(at) = rest.iter().position(runs) {
            rest = rest.get(at + 1..).unwrap_or_default();
            let end = rest.iter().position(|word| word.text == ";" || word.text == "+").unwrap_or(rest.len());
            let words = rest.get(..end).unwrap_or_default();
            self.program(Layer { words, is_fed: true, ..layer })?;
        }
        Ok(())
    }

    /// Checks the script that is passed to a shell.
    fn shell(&self, layer: Layer<'_>) -> Verdict {
        match layer.words {
            // Words added by `find` and `xargs` would become part of the script.
            [option, text, ..]
                if option.is_fixed()
                    && TEXT_OPTIONS.contains(&option.text.as_str())
                    && text.is_fixed()
                    && !text.text.contains("{}") =>
            {
                self.script(&text.text, layer.left)
            }
            // Its script is a file, which is permitted if the shell is allowed.
            [file, ..] if !layer.is_fed && is_operand(file) => Ok(()),
            _ => Err(uncertain("a shell")),
        }
    }
}

fn uncertain(name: &str) -> String {
    format!("it cannot be told which programs {name} runs here")
}

/// Returns whether a word is known and not an option.
fn is_operand(word: &PlainWord) -> bool {
    word.is_fixed() && !word.text.starts_with(['-', '+'])
}

/// Returns whether a word is a format without variables, unlike `%n`.
fn is_plain_format(word: &PlainWord) -> bool {
    let sets =
        |rest: &str| rest.trim_start_matches(|c| "#'-+ 0123456789.*hjlLtz".contains(c)).starts_with('n');
    is_operand(word) && !word.text.split('%').skip(1).any(sets)
}

/// Checks the variable of a loop.
fn loop_head(words: &[PlainWord]) -> Verdict {
    match words {
        [name] => may_be_set(&name.text, is_own(&name.text)),
        [name, sign, ..] if sign.text == "in" && !sign.is_quoted => {
            may_be_set(&name.text, is_own(&name.text))
        }
        _ => Err("it cannot be told what the command's loop goes through".to_owned()),
    }
}

/// Checks that setting these variables cannot run a program. Variables for languages and time zones are allowed, and
/// lower-case variables of the script.
fn variable(word: &PlainWord, name: &str, is_for_itself: bool) -> Verdict {
    let value = word.text.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    // In other character sets, a shell may read different characters than this code.
    let is_language = (name == "LANG" || name.starts_with("LC_"))
        && word.is_fixed()
        && value.is_some_and(|value| value == "C" || value == "POSIX" || value.ends_with(".UTF-8"));
    may_be_set(name, is_language || name == "TZ" || (is_for_itself && is_own(name)))
}

fn is_own(name: &str) -> bool {
    let is_small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(is_small) && !STEERING.iter().any(|part| name.contains(part))
}

fn may_be_set(name: &str, is_harmless: bool) -> Verdict {
    let why = || format!("the command sets {name}, by which any program may be run");
    if is_harmless { Ok(()) } else { Err(why()) }
}

/// Returns whether a test contains no arithmetic, which would run commands in brackets.
fn is_plain_test(name: &str, words: &[PlainWord]) -> bool {
    let words = match (name, words) {
        ("test", words) => words,
        (_, [words @ .., last]) if last.is_fixed() && last.text == if name == "[" { "]" } else { "]]" } => {
            words
        }
        _ => return false,
    };
    let words = match words {
        [not, words @ ..] if not.is_fixed() && not.text == "!" => words,
        words => words,
    };
    let asks = |sign: &PlainWord, all: &[&str]| sign.is_fixed() && all.contains(&sign.text.as_str());
    // Only `[[` evaluates the words that it compares as arithmetic.
    let two = if name == "[[" { ASKS_TWO.get(..3).unwrap_or_default() } else { &ASKS_TWO };
    let is_asked = match words {
        [] | [_] => true,
        [sign, _] => asks(sign, &ASKS_ONE),
        [_, sign, _] => asks(sign, two),
        _ => false,
    };
    is_asked && words.iter().all(|word| !word.is_split)
}
