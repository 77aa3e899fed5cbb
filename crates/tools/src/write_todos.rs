//! The agent's own to-do list.

use pudu_base::{Todo, ToolCx, ToolError, ToolOutput, TypedTool, Update};
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum number of entries in a list.
const MAX_TODOS: usize = 100;
/// Maximum length of an entry, in characters.
const MAX_ENTRY_CHARS: usize = 1_000;

pub(crate) struct WriteTodos;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The whole list, in order.
    todos: Vec<Todo>,
}

impl TypedTool for WriteTodos {
    type Args = Args;
    const NAME: &'static str = "write_todos";
    const DESCRIPTION: &'static str = "Keeps a to-do list, for work of three or more steps. Write the whole \
                                       list each time, keep one entry in progress, and mark an entry as \
                                       completed as soon as it is done.";
    const IDEMPOTENT: bool = true;

    async fn run(&self, args: Args, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        if args.todos.len() > MAX_TODOS {
            return Err(ToolError(format!("a list has at most {MAX_TODOS} entries")));
        }
        if args.todos.iter().any(|todo| todo.content.chars().nth(MAX_ENTRY_CHARS).is_some()) {
            return Err(ToolError(format!("an entry has at most {MAX_ENTRY_CHARS} characters")));
        }
        let text = format!("The list has {} entries.", args.todos.len());
        Ok(ToolOutput { text, updates: vec![Update::Todos(args.todos)], ..ToolOutput::default() })
    }
}
