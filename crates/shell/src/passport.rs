//! Decides whether a script runs only allowed programs. Anything uncertain is denied.

use crate::{
    MAX_SCRIPT_BYTES, MAX_SUBSTITUTION_DEPTH, UnreadScript, script,
    syntax::{ParsedCommand, ShellWord},
    wrapped::{Wrapper, found_commands, until_end},
};

/// Entry that allows any command.
const ANY: &str = "*";
/// Maximum nesting of programs that run other commands.
const MAX_LAYERS: usize = 16;

/// Shell builtins without side effects.
const HARMLESS: [&str; 11] =
    ["cd", "pwd", "true", "false", ":", "test", "[", "[[", "exit", "break", "continue"];
/// Folders of system programs.
const FOLDERS: [&str; 5] = ["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"];
/// Shells whose scripts this parser can parse.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "ash"];
/// Shell options whose argument is a script.
const TEXT_OPTIONS: [&str; 4] = ["-c", "-lc", "-ec", "-euc"];
/// Programs that set variables, evaluate expressions, or run commands from their arguments or input in their own way.
/// It is uncertain which programs they run, even if they are allowed themselves.
const UNCERTAIN: &str = ". alias bind compgen complete coproc declare enable eval export fc getopts hash jobs let local \
    mapfile read readarray readonly set shopt source trap typeset unset wait zsh ksh fish parallel script";
/// Operators of `test` for one operand, and for two.
const ASKS_ONE: [&str; 11] = ["-e", "-f", "-d", "-r", "-w", "-x", "-s", "-z", "-n", "-L", "-h"];
const ASKS_TWO: [&str; 9] = ["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// Parts of lower-case variable names that affect programs nevertheless.
const STEERING: [&str; 4] = ["proxy", "npm_", "histchars", "auto_resume"];

type Verdict = Result<(), String>;

/// Checks that a script runs only programs on a list. An entry is a name, the beginning of a command, or `*`.
///
/// # Errors
/// When the script may run another program. The error is the reason.
pub fn check(allowed: &[String], script: &str) -> Verdict {
    if allowed.iter().any(|entry| entry == ANY) {
        return Ok(());
    }
    ProgramList { allowed }.script(script, MAX_LAYERS)
}

/// A command that may be run by another program.
#[derive(Clone, Copy)]
struct Layer<'a> {
    words: &'a [ShellWord],
    /// Whether the program that runs the command appends words.
    is_fed: bool,
    /// Number of further layers that are allowed.
    left: usize,
}

/// The allowed programs.
struct ProgramList<'a> {
    allowed: &'a [String],
}

impl ProgramList<'_> {
    fn script(&self, script: &str, left: usize) -> Verdict {
        let read = match script::read(script, MAX_SUBSTITUTION_DEPTH) {
            _ if script.len() > MAX_SCRIPT_BYTES => Err(describe(UnreadScript::Long)),
            Err(why) => Err(describe(why)),
            Ok(script) => script.uncertain.map_or(Ok(script.commands), Err),
        };
        let commands =
            read.map_err(|what| format!("it is unclear which programs the command runs: it has {what}"))?;
        self.commands(&commands, left)
    }

    fn commands(&self, commands: &[ParsedCommand], left: usize) -> Verdict {
        commands.iter().try_for_each(|command| {
            command.nested().try_for_each(|inner| self.commands(inner, left))?;
            self.command(command, left)
        })
    }

    fn command(&self, command: &ParsedCommand, left: usize) -> Verdict {
        let words = command.words.as_slice();
        if let [head, rest @ ..] = words
            && head.is_keyword("for")
            && !command.redirected
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
            return Err("the program that the command runs is determined at run time".to_owned());
        }
        let name = program.text.rsplit('/').next().unwrap_or_default();
        let wrapper = Wrapper::find(name);
        if wrapper.is_some_and(|wrapper| wrapper.certain.is_none())
            || UNCERTAIN.split(' ').any(|uncertain| uncertain == name)
        {
            return Err(format!("{name} may run any program"));
        }
        self.listed(layer.words)?;
        let inner = Layer { words: layer.words.get(1..).unwrap_or_default(), left, ..layer };
        let certain = match name {
            "test" | "[" | "[[" => !layer.is_fed && is_plain_test(name, inner.words),
            "printf" => !layer.is_fed && inner.words.first().is_some_and(is_plain_format),
            "find" => return self.found(inner),
            name if SHELLS.contains(&name) => return self.shell(inner),
            _ => return wrapper.map_or(Ok(()), |wrapper| self.passed(wrapper, inner)),
        };
        if certain { Ok(()) } else { Err(uncertain(name)) }
    }

    /// Checks that a program is allowed with these arguments.
    fn listed(&self, words: &[ShellWord]) -> Verdict {
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

    /// Checks a command that a wrapper runs.
    fn passed(&self, wrapper: &Wrapper, mut layer: Layer<'_>) -> Verdict {
        let unclear = || uncertain(wrapper.name);
        let (flags, valued) = wrapper.certain.ok_or_else(unclear)?;
        let sets_variables = matches!(wrapper.name, "env" | "sudo");
        let is_question = |word: &ShellWord| word.is_fixed() && matches!(word.text.as_str(), "-v" | "-V");
        if layer.is_fed {
            return Err(unclear());
        }
        if wrapper.name == "command" && layer.words.first().is_some_and(is_question) {
            return Ok(());
        }
        while let Some(option) = layer.words.first().filter(|word| word.text.starts_with('-')) {
            let mut letters = option.text.chars().skip(1);
            let letter = letters.next().filter(|_| option.is_fixed()).ok_or_else(unclear)?;
            let own = match letters.next() {
                None if flags.contains(letter) => 1,
                None if valued.contains(letter) => 2,
                _ => return Err(unclear()),
            };
            // With another placeholder, `xargs` could also replace the program's name.
            let fits = |value: &ShellWord| is_operand(value) && (letter != 'I' || value.text == "{}");
            if own == 2 && !layer.words.get(1).is_some_and(fits) {
                return Err(unclear());
            }
            layer.words = layer.words.get(own..).unwrap_or_default();
        }
        while let Some(word) = layer.words.first().filter(|word| sets_variables && word.text.contains('=')) {
            variable(word, word.variable().ok_or_else(unclear)?, false)?;
            if word.is_split {
                return Err(unclear());
            }
            layer.words = layer.words.get(1..).unwrap_or_default();
        }
        if !layer.words.iter().take(wrapper.operands).all(is_operand) {
            return Err(unclear());
        }
        layer.words = layer.words.get(wrapper.operands..).unwrap_or_default();
        self.program(Layer { is_fed: wrapper.name == "xargs", ..layer })
    }

    /// Checks the commands that `find` runs.
    fn found(&self, layer: Layer<'_>) -> Verdict {
        // A word that is known only at run time could be `-exec`.
        let is_certain = |word: &ShellWord| word.is_fixed() || (!word.is_split && word.begins_fixed());
        if layer.is_fed || !layer.words.iter().all(is_certain) {
            return Err(uncertain("find"));
        }
        let run = |rest| self.program(Layer { words: until_end(rest), is_fed: true, ..layer });
        found_commands(layer.words).try_for_each(run)
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
            // A script in a file is permitted if the shell is allowed.
            [file, ..] if !layer.is_fed && is_operand(file) => Ok(()),
            _ => Err(uncertain("a shell")),
        }
    }
}

fn describe(why: UnreadScript) -> &'static str {
    match why {
        UnreadScript::Quotes => "unclosed quotes",
        UnreadScript::Brackets => "unclosed brackets",
        UnreadScript::Deep => "too deeply nested brackets",
        UnreadScript::Long => "too much text",
    }
}

fn uncertain(name: &str) -> String {
    format!("it is unclear which programs {name} runs here")
}

/// Returns whether a word is fixed and not an option.
fn is_operand(word: &ShellWord) -> bool {
    word.is_fixed() && !word.text.starts_with(['-', '+'])
}

/// Returns whether a word is a format that does not set variables, as `%n` does.
fn is_plain_format(word: &ShellWord) -> bool {
    let sets =
        |rest: &str| rest.trim_start_matches(|c| "#'-+ 0123456789.*hjlLtz".contains(c)).starts_with('n');
    is_operand(word) && !word.text.split('%').skip(1).any(sets)
}

/// Checks the variable of a loop.
fn loop_head(words: &[ShellWord]) -> Verdict {
    match words {
        [name] => may_be_set(&name.text, is_own(&name.text)),
        [name, sign, ..] if sign.is_keyword("in") => may_be_set(&name.text, is_own(&name.text)),
        _ => Err("it is unclear what the command's loop iterates over".to_owned()),
    }
}

/// Checks that setting a variable cannot run a program. Variables for the language and time zone are allowed, as are
/// the script's own lower-case variables.
fn variable(word: &ShellWord, name: &str, is_for_itself: bool) -> Verdict {
    let value = word.text.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    // With other character sets, a shell may read other characters than this parser.
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
    let why = || format!("the command sets {name}, which can make any program run");
    if is_harmless { Ok(()) } else { Err(why()) }
}

/// Returns whether a test is free of arithmetic, which could run commands in brackets.
fn is_plain_test(name: &str, words: &[ShellWord]) -> bool {
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
    let asks = |sign: &ShellWord, all: &[&str]| sign.is_fixed() && all.contains(&sign.text.as_str());
    // Only `[[` evaluates the operands of number comparisons as arithmetic.
    let two = if name == "[[" { ASKS_TWO.get(..3).unwrap_or_default() } else { &ASKS_TWO };
    let is_asked = match words {
        [] | [_] => true,
        [sign, _] => asks(sign, &ASKS_ONE),
        [_, sign, _] => asks(sign, two),
        _ => false,
    };
    is_asked && words.iter().all(|word| !word.is_split)
}

#[cfg(test)]
mod tests {
    use super::check as check_script;
    use crate::MAX_SCRIPT_BYTES;

    #[test]
    fn constructs_that_a_shell_may_parse_differently_are_denied_by_name() {
        let allowed = ["ls", "E", "{", "for", "if", "case", "function", "x"].map(String::from);
        let check = |script: &str, construct: &str| {
            let denied = format!("it is unclear which programs the command runs: it has {construct}");
            assert_eq!(check_script(&allowed, script), Err(denied), "{script}");
        };
        check("if(ls)", "a function, a list or a pattern in brackets");
        check("x=(ls)", "a function, a list or a pattern in brackets");
        check("ls &>(ls)", "a function, a list or a pattern in brackets");
        check("ls (ls)", "a function or an unbalanced bracket");
        check(">x (ls)", "a function or an unbalanced bracket");
        check("ls )", "a function or an unbalanced bracket");
        check("((1))", "an arithmetic expansion");
        check("( ls", "unclosed brackets");
        check("$(ls", "unclosed brackets");
        check("ls 'x", "unclosed quotes");
        check("[[ x\n]]", "a symbol in a test");
        check("ls\r", "white space that a shell does not recognise");
        check("ls x\u{1}", "white space that a shell does not recognise");
        check("(ls # x\n)", "a comment in brackets");
        check("ls\\\n x", "a backslash at the end of a line within a word");
        check("ls \\\n#x", "a backslash at the end of a line within a word");
        check("ls x\\", "a backslash at the end of a line within a word");
        check("ls \"x\\\n\"", "a backslash at the end of a line in a text");
        check("ls <(ls)x", "a word after a bracket");
        check("{x}>x ls", "a variable before a redirection");
        check(">x if ls", "a keyword after a redirection");
        check("case x", "a choice, a function or a coprocess");
        check(">x function ls", "a choice, a function or a coprocess");
        check("ls <| ls", "a redirection without a file");
        check("ls > ; ls", "a redirection without a file");
        check("(ls <<E)", "a here-document in brackets");
        check("ls <<E (ls)\nE", "a function or an unbalanced bracket");
        check("ls <<E $(ls)\nE", "brackets next to a here-document");
        check("ls <<E 'x\n'\nE", "a quote next to a here-document");
        check("ls <<E \"x\n\"\nE", "a quote next to a here-document");
        check("ls <<$x\n", "a here-document with an unusual delimiter");
        check("ls <<'E'E\n", "a here-document with an unusual delimiter");
        check("ls <<E\nx\\\nE\n", "a backslash at the end of a line in a here-document");
        check("ls <<E\n`ls`\nE\n", "backticks");
        check("ls $'x'", "quotes after a $");
        check("ls $1", "an unsupported symbol after a $");
        check("ls $((x))", "an arithmetic expansion with variables");
        check("ls $((ls) )", "an arithmetic expansion with variables");
        check("ls ${x:y}", "an unsupported variable in braces");
        check("ls ${!x}", "an unsupported variable in braces");
        check(&format!("{}ls{}", "( ".repeat(17), ")".repeat(17)), "too deeply nested brackets");
        check(&"x".repeat(MAX_SCRIPT_BYTES + 1), "too much text");
        assert_eq!(check_script(&allowed, &format!("{}ls{}", "( ".repeat(16), ")".repeat(16))), Ok(()));
    }

    #[test]
    fn substitutions_beside_a_program_are_not_part_of_its_name() {
        let allowed = ["ls".to_owned()];
        for script in ["ls<(ls)", "ls$(ls)", "ls\"$x\"", "ls*"] {
            assert!(check_script(&allowed, script).is_err(), "{script}");
        }
        for script in ["ls <(ls)", "ls < <(ls)", "ls -a$(ls)", "ls \"$(pwd)\"", "ls 2>&1 >x"] {
            assert_eq!(check_script(&allowed, script), Ok(()), "{script}");
        }
    }
}
