//! A server's list of tools. An invalid entry does not affect the rest: it is repaired, or omitted with a note.

use crate::{failure, repair, schema::ToolSchema, server::McpServer};
use rmcp::{
    RoleClient,
    model::{ListToolsResult, PaginatedRequestParams, Tool},
    service::{Peer, ServiceError},
};
use std::{collections::HashSet, fmt};

/// The connection to a server, cheap to clone. Requests fail once its session has ended.
pub(crate) type McpWire = Peer<RoleClient>;

/// Maximum number of tools of a server.
const MAX_TOOLS: usize = 512;
/// Maximum number of pages of a list.
const MAX_PAGES: usize = 64;
/// Maximum length of a tool's description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 8_000;
/// Maximum length of a tool's original name, in characters.
const MAX_REMOTE_NAME_CHARS: usize = 512;
/// Maximum number of notes kept for a server.
const MAX_NOTES: usize = 64;
/// Number of schema changes that a note names.
const NAMED_CHANGES: usize = 3;

/// A tool that can be offered to a model.
#[derive(Debug)]
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
    /// The server's name for the tool, if the note is about one.
    pub tool: Option<String>,
    /// The problem, and how it was handled.
    pub what: String,
    /// Whether the note is about a listed entry that is not offered.
    pub is_left_out: bool,
}

impl fmt::Display for ToolNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = if self.is_left_out { "left out" } else { "repaired" };
        match &self.tool {
            // The name is foreign text, which could contain terminal control codes.
            Some(tool) => write!(f, "{action} tool {}: {}", tool.escape_debug(), self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// The tools of a server, and notes on invalid ones.
#[derive(Debug, Default)]
pub(crate) struct ToolList {
    pub(crate) tools: Vec<ListedTool>,
    pub(crate) notes: Vec<ToolNote>,
    seen: HashSet<String>,
}

/// Requests a server's tools.
///
/// # Errors
/// When the server rejects the first page. A later failure loses only the rest of the list.
pub(crate) async fn ask(wire: &McpWire, server: &McpServer) -> Result<ToolList, ServiceError> {
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
            // A cursor without new tools would be followed for ever. An empty cursor counts, too.
            Some(next) if !is_new || !cursors.insert(next.clone()) => {
                let what = "its list of tools never ends: it was read until it repeated itself";
                list.note(server, None, what, false);
                break;
            }
            Some(_) => {}
        }
    }
    Ok(list)
}

impl ToolList {
    /// Adds a page, and returns whether it had a new tool.
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

    fn offer(&mut self, tool: Tool, server: &McpServer) {
        let remote = tool.name.into_owned();
        if server.off.contains(&remote) {
            return;
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
            let named: Vec<&str> = schema.changes.iter().map(String::as_str).take(NAMED_CHANGES).collect();
            self.note(server, Some(remote.clone()), &named.join("; "), false);
        }
        let description = tool.description.unwrap_or_default();
        let mut kept: String = description.chars().take(MAX_DESCRIPTION_CHARS).collect();
        if kept.len() < description.len() {
            kept.push_str(" […]");
            let what = format!("its description is cut to {MAX_DESCRIPTION_CHARS} characters");
            self.note(server, Some(remote.clone()), &what, false);
        }
        self.tools.push(ListedTool { remote, description: kept, schema });
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
