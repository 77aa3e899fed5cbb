//! The programs that a script runs, for callers that look for some programs.

use super::{
    MAX_SCRIPT_BYTES, MAX_SUBSTITUTION_DEPTH, SHELLS,
    kind::Danger,
    script,
    syntax::{ParsedCommand, ScriptResult, ShellWord},
    wrapped::Bare,
};

/// Words that begin a loop, a choice or a function, and run nothing themselves.
const KEYWORDS: [&str; 4] = ["for", "select", "case", "function"];

/// Returns the programs that a script runs, those within others included: behind programs that pass a command on, in
/// substitutions, in the commands of `find`, and in texts that a shell is given. Each is the program as it is written,
/// and its arguments, without quotes; parts known only at run time are kept as written, with their `$`.
///
/// Deliberately no boundary: an expert of the shell can hide a program.
///
/// # Errors
/// When the script cannot be read, or is too long or too deep to be looked through.
pub fn commands(script: &str) -> Result<Vec<Vec<String>>, Danger> {
    if script.len() > MAX_SCRIPT_BYTES {
        return Err(Danger::Long);
    }
    let mut found = Vec::new();
    collect_commands(script, MAX_SUBSTITUTION_DEPTH, &mut found)?;
    Ok(found)
}

fn collect_commands(script: &str, depth: usize, found: &mut Vec<Vec<String>>) -> ScriptResult<()> {
    let depth = depth.checked_sub(1).ok_or(Danger::Deep)?;
    all(&script::read(script, depth)?, depth, found)
}

fn all(commands: &[ParsedCommand], depth: usize, found: &mut Vec<Vec<String>>) -> ScriptResult<()> {
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
    found: &mut Vec<Vec<String>>,
) -> ScriptResult<()> {
    if words.first().is_some_and(|word| !word.quoted && KEYWORDS.contains(&word.text.as_str())) {
        return Ok(());
    }
    let layers = Bare::layers(words);
    let texts = |words: &&[ShellWord]| words.iter().map(|word| word.text.clone()).collect();
    found.extend(layers.iter().map(texts));
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
    found: &mut Vec<Vec<String>>,
) -> ScriptResult<()> {
    let option = |word: &&ShellWord| word.text.starts_with(['-', '+']) && word.text.len() > 1;
    let options = arguments.iter().take_while(option).count();
    let (options, operands) = arguments.split_at(options);
    let takes_text = options.iter().any(|word| !word.text.starts_with("--") && word.text.contains('c'));
    let text = operands.first().filter(|_| takes_text).map(|word| word.text.as_str());
    text.or(input).map_or(Ok(()), |text| collect_commands(text, depth, found))
}

/// Looks at the commands that `find` runs.
fn finds(words: &[ShellWord], depth: usize, found: &mut Vec<Vec<String>>) -> ScriptResult<()> {
    let runs = |word: &ShellWord| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let mut rest = words;
    while let Some(at) = rest.iter().position(runs) {
        rest = rest.get(at + 1..).unwrap_or_default();
        let end = rest.iter().position(|word| word.text == ";" || word.text == "+").unwrap_or(rest.len());
        one(rest.get(..end).unwrap_or_default(), None, depth, found)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the programs of a script.
    fn programs(script: &str) -> Vec<String> {
        let found = commands(script).unwrap_or_else(|why| panic!("{script}: {why:?}"));
        found.into_iter().filter_map(|words| words.into_iter().next()).collect()
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
        check("sudo -u ada env A=1 nice -n 5 rm x", &["sudo", "env", "nice", "rm"]);
        check("ls | xargs -n 1 rm", &["ls", "xargs", "rm"]);
        check("find . -name x -exec rm {} \\; -ok curl y +", &["find", "rm", "curl"]);
        check("find . -exec sh -c 'rm x' \\;", &["find", "sh", "rm"]);
        check("bash -c 'git log; rm x'", &["bash", "git", "rm"]);
        check("bash <<< 'rm x'", &["bash", "rm"]);
        check("PATH=. git log", &["git"]);
        check("PATH=.; git log", &["git"]);
        check("if git log; then rm x; fi", &["git", "rm"]);
        check("for f in $(curl x); do rm $f; done", &["curl", "rm"]);
        check("case $(curl x) in a) rm y;; esac", &["curl", "rm"]);
        check("f() { rm x; }; f", &["f", "rm", "f"]);
        check("r'm' x; \\rm x; \"rm\" x", &["rm", "rm", "rm"]);
        check("$X y; ${Y} z; {rm,-rf} /; /tmp/git log", &["$X", "${Y}", "{rm,-rf}", "/tmp/git"]);
        check("eval \"$X\"", &["eval"]);
        check("git log # ; rm x", &["git"]);
        check("'[[' x; rm y", &["[[", "rm"]);
        check("\\[[ x\nrm y", &["[[", "rm"]);
        check("'case' x in; rm y", &["case", "rm"]);
        check("cat <<E\\\nOF\n$(rm x)\nEOF", &["rm", "cat"]);
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
