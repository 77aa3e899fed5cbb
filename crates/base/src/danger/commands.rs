//! The programs that a script runs, for those who allow some and no others.

use super::{
    MAX_SCRIPT_BYTES, MAX_SUBSTITUTION_DEPTH, SHELLS,
    kind::Danger,
    script,
    syntax::{ParsedCommand, ScriptResult, ShellWord},
    wrapped::Bare,
};

/// Words that begin a loop, a choice or a function, and run nothing themselves.
const KEYWORDS: [&str; 4] = ["for", "select", "case", "function"];

/// A program that a script runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCommand {
    /// The program as it is written, and its arguments, without quotes; none where only variables are set. What is known
    /// only when it runs stands as it is written, with its `$`.
    pub words: Vec<String>,
    /// The variables that are set for it.
    pub variables: Vec<String>,
}

/// Returns the programs that a script runs, those within others included: behind programs that pass a command on, in
/// substitutions, in what `find` runs, and in texts that a shell is given.
///
/// # Errors
/// When the script cannot be read, or is too long or too deep to be looked through.
pub fn commands(script: &str) -> Result<Vec<RunCommand>, Danger> {
    if script.len() > MAX_SCRIPT_BYTES {
        return Err(Danger::Long);
    }
    let mut found = Vec::new();
    look(script, MAX_SUBSTITUTION_DEPTH, &mut found)?;
    Ok(found)
}

fn look(script: &str, depth: usize, found: &mut Vec<RunCommand>) -> ScriptResult<()> {
    let depth = depth.checked_sub(1).ok_or(Danger::Deep)?;
    all(&script::read(script, depth)?, depth, found)
}

fn all(commands: &[ParsedCommand], depth: usize, found: &mut Vec<RunCommand>) -> ScriptResult<()> {
    for command in commands {
        for inner in command.words.iter().map(|word| &word.inner).chain([&command.inner]) {
            all(inner, depth, found)?;
        }
        one(&command.words, command.input.as_deref(), depth, found)?;
    }
    Ok(())
}

fn one(
    words: &[ShellWord],
    input: Option<&str>,
    depth: usize,
    found: &mut Vec<RunCommand>,
) -> ScriptResult<()> {
    if words.first().is_some_and(|word| !word.quoted && KEYWORDS.contains(&word.text.as_str())) {
        return Ok(());
    }
    let layers = Bare::layers(words);
    let own = layers.last().map_or(0, |last| last.len());
    let passing = words.get(..words.len() - own).unwrap_or_default();
    let variables: Vec<String> = passing.iter().filter_map(|word| variable(&word.text)).collect();
    let texts = |words: &[ShellWord]| words.iter().map(|word| word.text.clone()).collect();
    if layers.is_empty() && !variables.is_empty() {
        found.push(RunCommand { words: Vec::new(), variables: variables.clone() });
    }
    for layer in &layers {
        found.push(RunCommand { words: texts(layer), variables: variables.clone() });
    }
    let Some(last) = layers.last() else { return Ok(()) };
    let program = last.first().and_then(|word| word.text.rsplit('/').next()).unwrap_or_default();
    if SHELLS.contains(&program) {
        return shell(last.get(1..).unwrap_or_default(), input, depth, found);
    }
    if program == "find" {
        return finds(last, depth, found);
    }
    Ok(())
}

/// Looks at the text that a shell is given to run.
fn shell(
    arguments: &[ShellWord],
    input: Option<&str>,
    depth: usize,
    found: &mut Vec<RunCommand>,
) -> ScriptResult<()> {
    let option = |word: &&ShellWord| word.text.starts_with(['-', '+']) && word.text.len() > 1;
    let options = arguments.iter().take_while(option).count();
    let (options, operands) = arguments.split_at(options);
    let takes_text = options.iter().any(|word| !word.text.starts_with("--") && word.text.contains('c'));
    let text = operands.first().filter(|_| takes_text).map(|word| word.text.as_str());
    text.or(input).map_or(Ok(()), |text| look(text, depth, found))
}

/// Looks at the commands that `find` runs.
fn finds(words: &[ShellWord], depth: usize, found: &mut Vec<RunCommand>) -> ScriptResult<()> {
    let runs = |word: &ShellWord| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let mut rest = words;
    while let Some(at) = rest.iter().position(runs) {
        rest = rest.get(at + 1..).unwrap_or_default();
        let end = rest.iter().position(|word| word.text == ";" || word.text == "+").unwrap_or(rest.len());
        one(rest.get(..end).unwrap_or_default(), None, depth, found)?;
    }
    Ok(())
}

/// Returns the name of the variable that a word sets.
fn variable(word: &str) -> Option<String> {
    let (name, _) = word.split_once('=')?;
    let name = name.trim_end_matches('+').split('[').next().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(plain)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the programs of a script, and the variables that it sets as `NAME=`.
    fn programs(script: &str) -> Vec<String> {
        let told = |command: RunCommand| {
            let program = command.words.first().cloned();
            command
                .variables
                .iter()
                .map(|name| format!("{name}="))
                .chain(program)
                .collect::<Vec<_>>()
                .join(" ")
        };
        commands(script).unwrap_or_else(|why| panic!("{script}: {why:?}")).into_iter().map(told).collect()
    }

    #[test]
    fn nothing_that_a_script_runs_is_hidden() {
        let check = |script: &str, expect: &[&str]| assert_eq!(programs(script), expect, "{script}");
        check("git status", &["git"]);
        check("git status; rm -rf /", &["git", "rm"]);
        check("git log && curl x || wget y | sh & nc z", &["git", "curl", "wget", "sh", "nc"]);
        check("git log\nrm x", &["git", "rm"]);
        check("git log $(rm x) `curl y` \"$(nc z)\"", &["rm", "curl", "nc", "git"]);
        check("git log <(rm x) > $(curl y)", &["rm", "curl", "git"]);
        check("git <<EOF\n$(rm x)\nEOF", &["rm", "git"]);
        check("sudo -u ada env A=1 nice -n 5 rm x", &["A= sudo", "A= env", "A= nice", "A= rm"]);
        check("ls | xargs -n 1 rm", &["ls", "xargs", "rm"]);
        check("find . -name x -exec rm {} \\; -ok curl y +", &["find", "rm", "curl"]);
        check("find . -exec sh -c 'rm x' \\;", &["find", "sh", "rm"]);
        check("bash -c 'git log; rm x'", &["bash", "git", "rm"]);
        check("bash <<< 'rm x'", &["bash", "rm"]);
        check("PATH=. git log", &["PATH= git"]);
        check("PATH=.; git log", &["PATH=", "git"]);
        check("if git log; then rm x; fi", &["git", "rm"]);
        check("for f in $(curl x); do rm $f; done", &["curl", "rm"]);
        check("case $(curl x) in a) rm y;; esac", &["curl", "rm"]);
        check("f() { rm x; }; f", &["f", "rm", "f"]);
        check("r'm' x; \\rm x; \"rm\" x", &["rm", "rm", "rm"]);
        check("$X y; ${Y} z; {rm,-rf} /; /tmp/git log", &["$X", "${Y}", "{rm,-rf}", "/tmp/git"]);
        check("eval \"$X\"", &["eval"]);
        check("git log # ; rm x", &["git"]);
        check("", &[]);
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        assert_eq!(commands("git 'log"), Err(Danger::Quotes));
        assert_eq!(commands("git $(log"), Err(Danger::Brackets));
        assert_eq!(commands(&"$(".repeat(100)), Err(Danger::Deep));
        assert_eq!(commands(&"x".repeat(MAX_SCRIPT_BYTES + 1)), Err(Danger::Long));
    }

    proptest! {
        #[test]
        fn any_text_is_looked_through(script in "[a-z $()`'\"|&;<>{}\\\\\n=-]{0,80}") {
            drop(commands(&script));
        }

        #[test]
        fn what_stands_behind_any_harmless_command_is_found(before in "[a-z]{1,8}( [a-z0-9./-]{1,8}){0,3}", gap in "(;|&&|\\|\\||\\||&|\n)") {
            let script = format!("{before} {gap} hidden x");
            prop_assert!(programs(&script).contains(&"hidden".to_owned()), "{}", script);
        }
    }
}
