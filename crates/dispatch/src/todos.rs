//! Renders the agent's to-do list for users: short enough for a phone, shown while the agent works and when it did not
//! finish.
//!
//! Deliberately absent: the list in a complete answer, whose reader does not need the steps that led to it.

use pudu_base::{Todo, TodoStatus, foreign};
use pudu_texts::Language;

/// Maximum number of entries shown. A longer list is shortened around the current one.
const MAX_LINES: usize = 8;
/// Maximum length of a shown entry, in characters.
const MAX_ENTRY_CHARS: usize = 100;
/// Maximum number of entries named in a sentence.
const MAX_NAMED: usize = 3;

/// Returns the list while the agent works, one entry per line; empty if there is none.
pub(super) fn live(language: Language, todos: &[Todo]) -> String {
    let open = || todos.iter().filter(|todo| todo.status != TodoStatus::Completed);
    let done = todos.len() - open().count();
    if todos.len() <= MAX_LINES {
        return todos.iter().map(line).collect::<Vec<_>>().join("\n");
    }
    let room = MAX_LINES - 1 - usize::from(done > 0);
    let all_done = (done > 0).then(|| format!("✅ {}", language.todos_done(done)));
    let lines: Vec<String> = open().take(room).map(line).collect();
    let rest = (todos.len() - done).saturating_sub(lines.len());
    let more = (rest > 0).then(|| language.more(rest));
    all_done.into_iter().chain(lines).chain(more).collect::<Vec<_>>().join("\n")
}

/// Returns a sentence on how far the agent got; empty if everything is done.
pub(super) fn left(language: Language, todos: &[Todo]) -> String {
    let open: Vec<&Todo> = todos.iter().filter(|todo| todo.status != TodoStatus::Completed).collect();
    if open.is_empty() {
        return String::new();
    }
    let more = open.len().saturating_sub(MAX_NAMED);
    let entries = open.iter().take(MAX_NAMED).map(|todo| entry(todo));
    let entries: Vec<String> = entries.chain((more > 0).then(|| language.more(more))).collect();
    language.todos_left(todos.len(), todos.len() - open.len(), entries.join(language.task_gap()))
}

fn line(todo: &Todo) -> String {
    let sign = match todo.status {
        TodoStatus::Completed => "✅",
        TodoStatus::InProgress => "▶️",
        TodoStatus::Pending => "▫️",
    };
    format!("{sign} {}", entry(todo))
}

fn entry(todo: &Todo) -> String {
    one_line(&todo.content)
}

/// Returns a model's text as one short line that mentions no user.
pub(super) fn one_line(words: &str) -> String {
    foreign::line(words, MAX_ENTRY_CHARS).replace('@', "＠")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn todos(statuses: &str) -> Vec<Todo> {
        let status = |c| match c {
            'x' => TodoStatus::Completed,
            '>' => TodoStatus::InProgress,
            _ => TodoStatus::Pending,
        };
        let todo = |(at, c)| Todo { content: format!("step\n@{at}"), status: status(c) };
        statuses.chars().enumerate().map(todo).collect()
    }

    #[test]
    fn a_list_shows_its_progress_and_a_long_one_is_shortened() {
        let live = |statuses: &str| live(Language::English, &todos(statuses));
        assert_eq!(live(""), "");
        assert_eq!(live("x>."), "✅ step ＠0\n▶️ step ＠1\n▫️ step ＠2");
        let long = live("xxxx>.......");
        assert_eq!(long.lines().count(), MAX_LINES);
        assert!(long.starts_with("✅ 4 done\n▶️ step ＠4\n") && long.ends_with("\nand 2 more"), "{long}");
        assert_eq!(live(&"x".repeat(20)), "✅ 20 done");
    }

    #[test]
    fn unfinished_work_reports_how_far_it_got() {
        let left = |statuses: &str| left(Language::English, &todos(statuses));
        assert_eq!(left(""), "");
        assert_eq!(left("xx"), "");
        assert_eq!(left("x>."), "📋 1 of 3 steps done. Left: step ＠1; step ＠2");
        assert!(left("x.....").ends_with("step ＠3; and 2 more"), "{}", left("x....."));
    }
}
