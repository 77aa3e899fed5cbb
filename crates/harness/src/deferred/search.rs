//! `tool_search`: finds deferred tools by name or by words, returns their schemas, and records that the agent may now
//! call them.

use super::{SEARCH, ToolCatalog};
use crate::RunAgent;
use pudu_base::{ToolCx, ToolError, ToolOutput, ToolSpec, TypedTool, Update, erase};
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{cmp::Reverse, sync::Arc};

/// Maximum number of tools that a search returns. Tools selected by name are all returned.
const MAX_SEARCH_RESULTS: usize = 5;
/// Maximum length of a query, in characters.
const QUERY: usize = 2_000;
/// Maximum size of a compiled pattern, in bytes.
const PATTERN: usize = 1 << 20;
/// Maximum size of the schemas in one result, in bytes. The model gets the others with its next step.
const SCHEMAS: usize = 10_000;
/// Maximum length of the description of a tool without its schema, in characters.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// Adds `tool_search` to an agent for the tools in its catalogue; removes it if the catalogue is empty.
#[must_use]
pub fn searching(agent: RunAgent) -> RunAgent {
    let RunAgent { deferred, tools, .. } = &agent;
    if deferred.is_empty() && tools.get(SEARCH).is_none() {
        return agent;
    }
    let deferred = deferred.restricted_to(tools);
    let rest = tools.only(|name| name != SEARCH);
    let tools = if deferred.is_empty() { rest } else { rest.with(erase(ToolSearch(deferred.clone()))) };
    RunAgent { deferred, tools, ..agent }
}

pub(super) struct ToolSearch(pub(super) Arc<ToolCatalog>);

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// `select:name_one,name_two` for tools whose names you know; `+word rest` for tools with that word in their
    /// names, best matches of the rest first; anything else is a regular expression for names and descriptions.
    query: String,
}

impl TypedTool for ToolSearch {
    type Args = Args;
    const NAME: &'static str = SEARCH;
    const DESCRIPTION: &'static str = "Finds tools that you know only by name, returns their parameters, and makes \
         them callable from your next step on. Returns at most the five best matches, or all tools that you select by name.";
    const IDEMPOTENT: bool = true;

    async fn run(&self, args: Args, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        let found = find(&self.0.specs, &args.query)?;
        let names: Vec<String> = found.iter().map(|spec| spec.name.clone()).collect();
        let mut text = schemas_to_json(&found);
        if let Some(wanted) = selected(&args.query) {
            let missing: Vec<&str> = wanted.filter(|name| !names.iter().any(|found| found == name)).collect();
            if !missing.is_empty() {
                text = format!("{text}\nThere is no {}.", missing.join(", "));
            }
        }
        let updates = vec![Update::Promote { catalog: self.0.hash.clone(), names }];
        Ok(ToolOutput { text, updates, ..ToolOutput::default() })
    }
}

/// Finds the tools that match a query; an error describes how to search if there are none.
fn find<'a>(specs: &'a [Arc<ToolSpec>], query: &str) -> Result<Vec<&'a ToolSpec>, ToolError> {
    let query = query.trim();
    if query.is_empty() || query.chars().nth(QUERY).is_some() {
        return Err(ToolError(format!("the query must have 1 to {QUERY} characters")));
    }
    let found = match (selected(query), query.strip_prefix('+')) {
        (Some(wanted), _) => {
            wanted.filter_map(|name| specs.iter().find(|spec| spec.name == name)).map(AsRef::as_ref).collect()
        }
        (None, Some(rest)) => required(specs, rest)?,
        (None, None) => ranked(specs, query)?,
    };
    if found.is_empty() {
        return Err(ToolError(format!(
            "no tool matches {query}. Try a word from its name or its purpose, or select:name with a name from the list"
        )));
    }
    Ok(found)
}

/// Returns the names in a query that selects by name.
fn selected(query: &str) -> Option<impl Iterator<Item = &str>> {
    let names = query.trim().strip_prefix("select:")?;
    Some(names.split(',').map(str::trim).filter(|name| !name.is_empty()))
}

/// Returns the tools with a required word in their names, best first.
fn required<'a>(specs: &'a [Arc<ToolSpec>], query: &str) -> Result<Vec<&'a ToolSpec>, ToolError> {
    let (word, rest) = query.trim_start().split_once(char::is_whitespace).unwrap_or((query.trim(), ""));
    let word = word.to_lowercase();
    let with_word = specs.iter().map(AsRef::as_ref);
    let with_word =
        with_word.filter(|spec: &&ToolSpec| !word.is_empty() && spec.name.to_lowercase().contains(&word));
    let rest = match rest.trim() {
        "" => None,
        rest => Some(pattern(rest)?),
    };
    let score = |spec: &ToolSpec| rest.as_ref().map_or(0, |pattern| score(spec, pattern));
    Ok(best(with_word.map(|spec| (score(spec), spec)).collect()))
}

/// Returns the tools that match a pattern, best first. If nothing matches several words together, each is searched for
/// separately.
fn ranked<'a>(specs: &'a [Arc<ToolSpec>], query: &str) -> Result<Vec<&'a ToolSpec>, ToolError> {
    let pattern = pattern(query)?;
    let fits = |score: &dyn Fn(&ToolSpec) -> usize| {
        best(specs.iter().map(|spec| (score(spec), &**spec)).filter(|(score, _)| *score > 0).collect())
    };
    let found = fits(&|spec| score(spec, &pattern));
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    if !found.is_empty() || words.len() < 2 {
        return Ok(found);
    }
    Ok(fits(&|spec| {
        let (name, about) = (spec.name.to_lowercase(), spec.description.to_lowercase());
        words
            .iter()
            .map(|word| 2 * usize::from(name.contains(word)) + usize::from(about.contains(word)))
            .sum()
    }))
}

fn pattern(text: &str) -> Result<Regex, ToolError> {
    let built = RegexBuilder::new(text).case_insensitive(true).size_limit(PATTERN).build();
    built.map_err(|error| {
        ToolError(format!(
            "the query is not a valid regular expression: {error}. Try plain words, or select:name"
        ))
    })
}

/// Scores a tool: a match in its name counts double.
fn score(spec: &ToolSpec, pattern: &Regex) -> usize {
    2 * usize::from(pattern.is_match(&spec.name)) + usize::from(pattern.is_match(&spec.description))
}

/// Returns the best matches, sorted by name where scores are equal.
fn best(mut scored: Vec<(usize, &ToolSpec)>) -> Vec<&ToolSpec> {
    scored.sort_by_key(|(score, _)| Reverse(*score));
    scored.into_iter().take(MAX_SEARCH_RESULTS).map(|(_, spec)| spec).collect()
}

/// Returns the schemas of the found tools, as JSON.
fn schemas_to_json(found: &[&ToolSpec]) -> String {
    let mut room = SCHEMAS;
    let one = |spec: &&ToolSpec| {
        let ToolSpec { name, description: about, parameters, .. } = spec;
        let entry = json!({"name": name, "description": about, "parameters": parameters});
        match room.checked_sub(entry.to_string().len()) {
            Some(rest) => {
                room = rest;
                entry
            }
            None => {
                let about: String = about.chars().take(MAX_DESCRIPTION_CHARS).collect();
                json!({"name": name, "description": about, "parameters": "in your tools from your next step on"})
            }
        }
    };
    Value::from(found.iter().map(one).collect::<Vec<_>>()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, about: &str) -> ToolSpec {
        ToolSpec { name: name.into(), description: about.into(), parameters: json!({}), idempotent: false }
    }

    fn specs() -> Vec<Arc<ToolSpec>> {
        let mut specs = vec![
            spec("git_commit", "Records changes."),
            spec("git_log", "Shows the commits of a branch."),
            spec("mail_send", "Sends a letter, with a copy in the log."),
            spec("mail_list", "Lists letters."),
        ];
        specs.extend((0..9).map(|n| spec(&format!("many_{n}"), "One of many.")));
        specs.sort_by(|one, other| one.name.cmp(&other.name));
        specs.into_iter().map(Arc::new).collect()
    }

    fn check(query: &str, expect: &[&str]) {
        let specs = specs();
        let found = find(&specs, query).unwrap_or_default();
        assert_eq!(found.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), expect, "{query}");
    }

    #[test]
    fn tools_are_found_by_name_by_word_and_by_pattern() {
        check("select:mail_send,git_log", &["mail_send", "git_log"]);
        check(" select: git_log , none ", &["git_log"]);
        check(
            "select:many_0,many_1,many_2,many_3,many_4,many_5",
            &["many_0", "many_1", "many_2", "many_3", "many_4", "many_5"],
        );
        check("select:", &[]);
        check("+mail", &["mail_list", "mail_send"]);
        check("+MAIL copy|send", &["mail_send", "mail_list"]);
        check("+none copy", &[]);
        check("+", &[]);
        check("commit", &["git_commit", "git_log"]);
        check("^git_.*G$", &["git_log"]);
        check("log", &["git_log", "mail_send"]);
        check("many", &["many_0", "many_1", "many_2", "many_3", "many_4"]);
        check("send letter", &["mail_send", "mail_list"]);
        check("xyzzy plugh", &[]);
    }

    #[test]
    fn invalid_queries_explain_the_fix() {
        let said = |query: &str| find(&specs(), query).unwrap_err().0;
        assert_eq!(said("  "), "the query must have 1 to 2000 characters");
        assert_eq!(said(&"x".repeat(2001)), "the query must have 1 to 2000 characters");
        assert!(
            said("(mail").starts_with("the query is not a valid regular expression: "),
            "{}",
            said("(mail")
        );
        assert!(said("+mail (x").contains("Try plain words, or select:name"));
        assert!(said(r"(\w{1000}){1000}").contains("size limit"), "{}", said(r"(\w{1000}){1000}"));
        assert!(said("select:none").starts_with("no tool matches select:none. "));
    }

    #[test]
    fn schemas_are_included_while_there_is_room() {
        let large =
            ToolSpec { parameters: json!({"x": "y".repeat(8_000)}), ..spec("large", &"z".repeat(900)) };
        let small = spec("small", "Little.");
        let text = schemas_to_json(&[&large, &large, &small]);
        assert!(text.len() < SCHEMAS + 2 * MAX_DESCRIPTION_CHARS + 200, "{}", text.len());
        let schemas: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(schemas[1]["parameters"], "in your tools from your next step on");
        assert_eq!(schemas[2], json!({"name": "small", "description": "Little.", "parameters": {}}));
    }
}
