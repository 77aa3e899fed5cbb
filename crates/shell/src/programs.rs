//! Lists the programs that a script runs.

use crate::{
    MAX_SCRIPT_BYTES, MAX_SUBSTITUTION_DEPTH, SHELLS, UnreadScript, script,
    syntax::{ParsedCommand, ScriptResult, ShellWord},
    wrapped::{self, Bare},
};

/// Keywords that begin a loop, a choice or a function and do not run a program themselves.
const KEYWORDS: [&str; 4] = ["for", "select", "case", "function"];

/// Returns the programs that a script runs, including those run by wrappers and `find`, in substitutions, and in
/// scripts passed to a shell. Each entry is a program as written with its arguments, without quotes; parts that are
/// known only at run time are kept as written, with their `$`.
///
/// This is not a security boundary, because a shell expert can hide a program.
///
/// # Errors
/// When the script cannot be parsed, is too long, or is nested too deeply.
pub fn commands(script: &str) -> Result<Vec<Vec<String>>, UnreadScript> {
    if script.len() > MAX_SCRIPT_BYTES {
        return Err(UnreadScript::Long);
    }
    let mut found = Vec::new();
    collect_commands(script, MAX_SUBSTITUTION_DEPTH, &mut found)?;
    Ok(found)
}

fn collect_commands(script: &str, depth: usize, found: &mut Vec<Vec<String>>) -> ScriptResult<()> {
    let depth = depth.checked_sub(1).ok_or(UnreadScript::Deep)?;
    all(&script::read(script, depth)?.commands, depth, found)
}

fn all(commands: &[ParsedCommand], depth: usize, found: &mut Vec<Vec<String>>) -> ScriptResult<()> {
    for command in commands {
        for inner in command.nested() {
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
    if words.first().is_some_and(|word| KEYWORDS.iter().any(|keyword| word.is_keyword(keyword))) {
        return Ok(());
    }
    let layers = Bare::new(words).layers;
    let texts = |words: &&[ShellWord]| words.iter().map(|word| word.text.clone()).collect();
    found.extend(layers.iter().map(texts));
    let Some(last) = layers.last() else { return Ok(()) };
    let program = last.first().and_then(|word| word.text.rsplit('/').next()).unwrap_or_default();
    if SHELLS.contains(&program) {
        let (options, operands) = wrapped::options(last.get(1..).unwrap_or_default());
        let text = operands.first().filter(|_| wrapped::takes_script(options));
        let text = text.map(|word| word.text.as_str()).or(input);
        return text.map_or(Ok(()), |text| collect_commands(text, depth, found));
    }
    if program == "find" {
        for rest in wrapped::found_commands(last) {
            one(wrapped::until_end(rest), None, depth, found)?;
        }
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
    fn all_programs_of_a_script_are_found() {
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
    fn unparsable_scripts_are_errors() {
        assert_eq!(commands("git 'log"), Err(UnreadScript::Quotes));
        assert_eq!(commands("git $(log"), Err(UnreadScript::Brackets));
        assert_eq!(commands(&"$(".repeat(100)), Err(UnreadScript::Deep));
        assert_eq!(commands(&"x".repeat(MAX_SCRIPT_BYTES + 1)), Err(UnreadScript::Long));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(script in "[a-z $()`'\"|&;<>{}\\\\\n=-]{0,80}") {
            drop(commands(&script));
        }

        #[test]
        fn commands_after_a_harmless_one_are_found(before in "[a-z]{1,8}( [a-z0-9./-]{1,8}){0,3}", gap in "(;|&&|\\|\\||\\||&|\n)") {
            let script = format!("{before} {gap} hidden x");
            prop_assert!(programs(&script).contains(&"hidden".to_owned()), "{}", script);
        }
    }
}
