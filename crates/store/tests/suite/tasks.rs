use crate::log::human_message;
use pudu_base::{
    StepKind, TaskEnd, TaskStage, TaskStatus, TaskStep, ThreadId, ThreadLog, ThreadState, Update, Usage,
};
use pudu_store::{Db, TaskFilter};

fn task(call: &str, stage: TaskStage) -> Update {
    Update::Task { call: call.into(), stage }
}

fn step(index: u32, text: &str) -> TaskStage {
    let kind = StepKind::Result { tool: "ls".into(), error: false };
    TaskStage::Step(TaskStep { index, kind, text: text.into(), truncated: false })
}

fn ended() -> TaskStage {
    TaskStage::Ended(TaskEnd {
        status: TaskStatus::Completed,
        stop_reason: None,
        model: "m".into(),
        usage: Usage::plain(1, 1),
        text: "Seven.".into(),
        truncated: false,
        omitted: 0,
    })
}

pub(crate) async fn sub_agent_steps_are_paged_in_order_outside_the_thread_state(db: Db) {
    let thread = ThreadId::from("a");
    let first = [
        human_message("1", "{\"op\":\"task\",\"value\""),
        task("c", step(1, "\u{1} 100 % \u{1F98C}")),
        task("d", step(1, "b")),
        human_message("2", "x"),
        task("c", ended()),
    ];
    let second = [task("e", step(1, "c"))];
    db.append(&thread, &"r".into(), 0, &first).await.unwrap();
    db.append(&thread, &"s".into(), 5, &second).await.unwrap();
    db.append(&"other".into(), &"r".into(), 0, &second).await.unwrap();
    let read = async |filter: TaskFilter| {
        let (rows, next) = db.task_stages(&thread, &filter).await.unwrap();
        let rows: Vec<_> =
            rows.into_iter().map(|row| (row.seq, row.run.to_string(), row.call.to_string())).collect();
        (rows, next)
    };
    let row = |seq: i64, run: &str, call: &str| (seq, run.to_owned(), call.to_owned());
    let (c, d, end, e) = (row(2, "r", "c"), row(3, "r", "d"), row(5, "r", "c"), row(6, "s", "e"));
    let all = || TaskFilter { limit: 100, ..TaskFilter::default() };
    assert_eq!(read(all()).await, (vec![c.clone(), d.clone(), end.clone(), e.clone()], None));
    assert_eq!(read(TaskFilter { run: Some("s".into()), ..all() }).await, (vec![e.clone()], None));
    assert_eq!(
        read(TaskFilter { call: Some("c".into()), ..all() }).await,
        (vec![c.clone(), end.clone()], None)
    );
    assert_eq!(read(TaskFilter { limit: 2, ..all() }).await, (vec![c, d], Some(3)));
    assert_eq!(read(TaskFilter { after: 3, ..all() }).await, (vec![end, e], None));
    let (rows, _) = db.task_stages(&thread, &all()).await.unwrap();
    assert_eq!(rows[0].stage, step(1, "\u{1} 100 % \u{1F98C}"));
    let (seq, state) = db.load(&thread).await.unwrap();
    assert_eq!((seq, state), (6, ThreadState::fold([first[0].clone(), first[3].clone()])));
}
