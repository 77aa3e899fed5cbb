//! The sub-agents at work, as people see them while the agent works: a line each, with its activity.
//!
//! Deliberately absent: those that are done. A reader of the answer needs no list of the way to it.

use super::todos::one_line;
use pudu_client::harness::Working;
use pudu_texts::Language;

/// No more are shown; the rest is counted.
const MAX_LINES: usize = 3;

/// Returns the lines; nothing where no sub-agent works.
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
    use pudu_client::{
        base::{RunEvent, TaskStage, Usage},
        harness::Replay,
    };

    #[test]
    fn each_sub_agent_has_a_line_with_what_it_does_and_the_fourth_is_counted() {
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
