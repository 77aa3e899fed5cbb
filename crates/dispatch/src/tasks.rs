//! Renders the running sub-agents while the agent works: one line each, with its activity.
//!
//! Deliberately absent: finished sub-agents. A reader of the answer does not need the steps that led to it.

use super::todos::one_line;
use pudu_harness::Working;
use pudu_texts::Language;

/// Maximum number of sub-agents shown; the others are counted.
const MAX_LINES: usize = 3;

/// Returns the lines; empty if no sub-agent is running.
pub(super) fn live(language: Language, tasks: &[Working]) -> String {
    let line = |task: &Working| {
        let about = one_line(&task.about);
        match task.doing.as_slice() {
            [] => language.task_thinking(about),
            doing => language.task_doing(about, one_line(&language.list(doing))),
        }
    };
    let rest = tasks.len().saturating_sub(MAX_LINES);
    let more = (rest > 0).then(|| language.more(rest));
    tasks.iter().take(MAX_LINES).map(line).chain(more).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::{RunEvent, TaskStage, Usage};
    use pudu_harness::Replay;

    #[test]
    fn each_sub_agent_has_a_line_and_those_above_the_limit_are_counted() {
        let replay = Replay::default();
        let stage =
            |call: &str, stage| replay.publish(RunEvent::SubagentProgress { call: call.into(), stage });
        let live = |language| live(language, &replay.progress().tasks);
        assert_eq!(live(Language::English), "");
        let starts = |call: &str, about: &str| {
            let (about, agent, model) = (about.to_owned(), "bash".to_owned(), "m".to_owned());
            stage(call, TaskStage::Started { about, agent, model });
        };
        starts("1", "count\napples @all");
        starts("2", "count pears");
        let doing = vec!["Reading the list".to_owned(), "ls".to_owned()];
        stage("2", TaskStage::Running { doing, usage: Usage::default() });
        let two = "🔹 count apples ＠all: thinking…\n🔹 count pears: Reading the list, ls";
        assert_eq!(live(Language::English), two);
        assert!(live(Language::Chinese).starts_with("🔹 count apples ＠all：思考中…\n"));
        starts("3", "c");
        starts("4", "d");
        assert_eq!(live(Language::English), format!("{two}\n🔹 c: thinking…\nand 1 more"));
    }
}
