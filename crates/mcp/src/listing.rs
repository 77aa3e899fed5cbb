//! A server's list of tools. An invalid entry is repaired, or omitted with a note, and does not affect the others.

use crate::{failure, prompt, repair, resource::ResourceRequest, schema::ToolSchema, server::McpServer};
use rmcp::{
    RoleClient,
    model::{ListToolsResult, PaginatedRequestParams, Prompt, Tool},
    service::{Peer, ServiceError},
};
use std::{collections::HashSet, fmt};

/// Maximum number of tools per server.
const MAX_TOOLS: usize = 512;
/// Maximum number of pages in a list.
const MAX_PAGES: usize = 64;
/// Maximum length of a tool's description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 8_000;
/// Maximum length of a tool's original name, in characters.
const MAX_REMOTE_NAME_CHARS: usize = 512;
/// Maximum number of notes kept per server.
const MAX_NOTES: usize = 64;
/// Maximum number of schema changes that a note names.
const NAMED_CHANGES: usize = 3;

/// A tool that can be offered to a model.
#[derive(Clone, Debug)]
pub(crate) struct ListedTool {
    /// The server's own name for the tool.
    pub(crate) remote: String,
    /// The tool's description for the model.
    pub(crate) description: String,
    /// The schema of its arguments.
    pub(crate) schema: ToolSchema,
}

/// Note on an invalid part of a server's tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolNote {
    /// The server's name in the configuration.
    pub server: String,
    /// The server's name for the tool, if the note is about a single tool.
    pub tool: Option<String>,
    /// The problem and the way it was handled.
    pub what: String,
    /// Whether the note is about tools that are not offered.
    pub is_left_out: bool,
}

impl fmt::Display for ToolNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = if self.is_left_out { "left out" } else { "repaired" };
        match &self.tool {
            // The name comes from the server and could contain terminal control codes.
            Some(tool) => write!(f, "{action} tool {}: {}", tool.escape_debug(), self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// The tools of a server, and notes on invalid ones.
#[derive(Debug, Default)]
pub(crate) struct ToolList {
    pub(crate) tools: Vec<ListedTool>,
    /// The server's names of the tools that the configuration disables.
    pub(crate) off: Vec<String>,
    /// Whether the server offers resources.
    pub(crate) has_resources: bool,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) notes: Vec<ToolNote>,
    seen: HashSet<String>,
}

/// Requests a server's tools.
///
/// # Errors
/// When the request for the first page fails. A later failure loses only the remaining pages.
pub(crate) async fn ask(wire: &Peer<RoleClient>, server: &McpServer) -> Result<ToolList, ServiceError> {
    let mut list = ToolList::default();
    let (mut cursor, mut cursors) = (None, HashSet::new());
    for _ in 0..MAX_PAGES {
        let page = match wire.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await {
            Ok(page) => page,
            Err(error) if list.tools.is_empty() => return Err(error),
            Err(error) => {
                let why = failure::of_request(&error, &server.label);
                list.note(server, None, &format!("the rest of its tools cannot be listed: {why}"), true);
                break;
            }
        };
        cursor = page.next_cursor.clone();
        let is_new = list.add(page, server);
        if list.tools.len() >= MAX_TOOLS {
            list.note(server, None, &format!("tools beyond the first {MAX_TOOLS} are left out"), true);
            break;
        }
        match &cursor {
            None => break,
            // A cursor that leads to no new tools could be followed forever. An empty cursor also counts as one.
            Some(next) if !is_new || !cursors.insert(next.clone()) => {
                let what = "its list of tools never ends: it was read until it repeated itself";
                list.note(server, None, what, false);
                break;
            }
            Some(_) => {}
        }
    }
    list.note_unknown_switches(server);
    let capabilities = wire.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
    list.has_resources = capabilities.resources.is_some();
    if capabilities.prompts.is_some() {
        match prompt::list(wire).await {
            Ok(prompts) => list.prompts = prompts,
            Err(error) => {
                let why = failure::of_request(&error, &server.label);
                list.note(server, None, &format!("its prompts cannot be listed: {why}"), true);
            }
        }
    }
    Ok(list)
}

fn is_resource_tool(name: &str) -> bool {
    ResourceRequest::ALL.iter().any(|request| request.remote() == name)
}

impl ToolList {
    /// Adds a page and returns whether it had a new tool.
    pub(crate) fn add(&mut self, page: ListToolsResult, server: &McpServer) -> bool {
        let unusable = page.meta.as_ref().and_then(|meta| meta.0.get(repair::UNUSABLE));
        for what in unusable.and_then(|unusable| unusable.as_array()).into_iter().flatten() {
            self.note(server, None, what.as_str().unwrap_or_default(), true);
        }
        let before = self.seen.len();
        for tool in page.tools {
            if self.tools.len() < MAX_TOOLS && self.seen.insert(tool.name.to_string()) {
                self.offer(tool, server);
            }
        }
        self.seen.len() > before
    }

    /// Notes the switches of tools that the server does not have: a misspelt name would switch nothing off.
    fn note_unknown_switches(&mut self, server: &McpServer) {
        let mut unknown: Vec<&String> =
            server.off.iter().filter(|name| !self.seen.contains(*name) && !is_resource_tool(name)).collect();
        unknown.sort();
        for name in unknown {
            let what = "`tools` of its entry switches it off, but the server has no such tool";
            self.note(server, Some(name.clone()), what, true);
        }
    }

    fn offer(&mut self, tool: Tool, server: &McpServer) {
        let remote = tool.name.into_owned();
        if server.off.contains(&remote) {
            return self.off.push(remote);
        }
        if remote.chars().count() > MAX_REMOTE_NAME_CHARS {
            let shown = remote.chars().take(MAX_REMOTE_NAME_CHARS).collect();
            return self.note(server, Some(shown), "its name is too long", true);
        }
        let schema = match ToolSchema::repair((*tool.input_schema).clone()) {
            Ok(schema) => schema,
            Err(why) => return self.note(server, Some(remote), &why, true),
        };
        if !schema.changes.is_empty() {
            let listed: Vec<&str> = schema.changes.iter().map(String::as_str).take(NAMED_CHANGES).collect();
            self.note(server, Some(remote.clone()), &listed.join("; "), false);
        }
        let description = tool.description.unwrap_or_default();
        let mut shortened: String = description.chars().take(MAX_DESCRIPTION_CHARS).collect();
        if shortened.len() < description.len() {
            shortened.push_str(" […]");
            let what = format!("its description is cut to {MAX_DESCRIPTION_CHARS} characters");
            self.note(server, Some(remote.clone()), &what, false);
        }
        self.tools.push(ListedTool { remote, description: shortened, schema });
    }

    fn note(&mut self, server: &McpServer, tool: Option<String>, what: &str, is_left_out: bool) {
        let note = ToolNote {
            server: server.name().to_owned(),
            tool,
            what: server.label.hide_and_cut(what),
            is_left_out,
        };
        if self.notes.len() < MAX_NOTES && !self.notes.contains(&note) {
            tracing::warn!(server = server.name(), "found odd tools of MCP server: {note}");
            self.notes.push(note);
        }
    }
}
