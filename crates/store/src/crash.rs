//! Points at which a test can kill the process, to prove that nothing depends on a clean shutdown.
//!
//! Every write of the store passes `<name>.before` right before its commit and `<name>.after` right after it, before
//! the caller gets the result. Other code can pass its own points. In a release build, no point can be armed, and
//! points compile to nothing.

/// The two points of one write. Every write has them.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
}

macro_rules! writes {
    ($($name:ident $text:literal,)*) => {
        $(pub(crate) const $name: Write =
            Write { before: concat!($text, ".before"), after: concat!($text, ".after") };)*

        /// The names of all points in the store.
        pub const POINTS: &[&str] = &[$(concat!($text, ".before"), concat!($text, ".after"),)*];
    };
}

writes! {
    ACCEPT "inbox.accept",
    SAVE_POSITION "inbox.position",
    AMEND "inbox.amend",
    FINISH "inbox.finish",
    OPEN_TURN "turn.open",
    JOIN_TURN "turn.join",
    DROP_GOAL "turn.drop_goal",
    LEAVE_TURN "turn.leave",
    SAVE_HANDLE "turn.handle",
    CONCLUDE "turn.conclude",
    DELIVERED "turn.delivered",
    FAILED "turn.failed",
    PARK "turn.park",
    CHOOSE "choice.choose",
    BIND "talk.bind",
    SET_MODEL "talk.model",
    SET_MODE "talk.mode",
    SET_THINKING "talk.thinking",
    SET_AGENT "talk.agent",
    RECORD "messages.record",
    BUFFER_KEEP "buffer.keep",
    BUFFER_EDIT "buffer.edit",
    BUFFER_TAKE "buffer.take",
    BUFFER_EXPIRE "buffer.expire",
    OFFER_CODE "pairing.offer",
    REDEEM_CODE "pairing.redeem",
    KEEP_LEARNING "learning.keep",
    LEARNT "learning.done",
    CLAIM_LEARNING "learning.claim",
    RELEASE_LEARNINGS "learning.release",
    PUT_OFF_LEARNING "learning.put_off",
    DROP_LEARNING "learning.drop",
    MEMORY_MERGED "memory.merged",
    MEMORY_OFF "memory.off",
    IDENTIFY "identity.set",
    OFFER_JOIN "identity.offer",
    JOIN "identity.join",
    PART "identity.part",
    UNPAIR "pairing.unpair",
    ACCEPT_RUN "run.accept",
    CANCEL_RUN "run.cancel",
    SUSPEND_RUNS "run.suspend",
    RESUME_RUN "run.resume",
    TAKE_OVER_RUNS "run.take_over",
    DELETE_RUN "run.delete",
    CREATE_THREAD "thread.create",
    CHANGE_THREAD "thread.change",
    PUT_FEEDBACK "feedback.put",
    DELETE_FEEDBACK "feedback.delete",
    RUN_STARTED "run.started",
    RUN_ENDED "run.ended",
    SETTLE "spending.settle",
    RESERVE "spending.reserve",
    SETTLE_LEFT "spending.left",
    BUDGET_WARNED "spending.warned",
    ASK "approvals.ask",
    DECIDE "approvals.decide",
    DEED_BEGINS "audit.begins",
    DEED_ENDS "audit.ends",
    APPEND "log.append",
    SNAPSHOT "log.snapshot",
    THREAD_USED "thread.used",
    MEASURED "thread.measured",
    TITLED "thread.titled",
    DELETE_THREAD "thread.delete",
    FILES_REMOVED "thread.files",
    RECALL_INDEX "recall.index",
    RECALL_UNINDEX "recall.unindex",
    RECALL_FORGET_USER "recall.forget_user",
    RECALL_FORGET_THREAD "recall.forget_thread",
    RECALL_PURGE "recall.purge",
    RECALL_MOVE "recall.move",
    RECALL_EXPIRE "recall.expire",
    PRUNE_AUDIT "audit.prune",
    FORGET_PERSON "person.forget",
    FORGET_LEARNINGS "person.forget_learnings",
    IMPORT_NOTE "import.note",
    IMPORT_THREAD "import.thread",
    IMPORT_RECORDS "import.records",
    ADD_ACCOUNT "accounts.add",
    ADOPT "adoption.begin",
    ADOPT_THREAD "adoption.thread",
    ADOPTED "adoption.end",
    CHANGE_PASSWORD "accounts.password",
    REHASH_PASSWORD "accounts.rehash",
    REMOVE_ACCOUNT "accounts.remove",
    PROVIDER_LOGIN "accounts.provider",
    ADD_API_TOKEN "tokens.add",
    USE_API_TOKEN "tokens.use",
    REVOKE_API_TOKEN "tokens.revoke",
    ADD_SCHEDULED "schedule.add",
    CHANGE_SCHEDULED "schedule.change",
    DELETE_SCHEDULED "schedule.delete",
    CLAIM_SCHEDULED "schedule.claim",
    REFUSE_SCHEDULED "schedule.refuse",
    PAUSE_SCHEDULED "schedule.pause",
    SWEEP "sweep",
}

#[cfg(debug_assertions)]
mod armed {
    use pudu_kit::simulation::Simulation;
    use std::sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    };

    struct Armed {
        name: String,
        left: AtomicU32,
    }

    static ARMED: OnceLock<Armed> = OnceLock::new();

    pub(super) fn arm(name: &str, nth: u32) {
        ARMED.get_or_init(|| Armed { name: name.to_owned(), left: AtomicU32::new(nth.max(1)) });
    }

    pub(super) fn point(name: &str) {
        Simulation::step(name).ok();
        let Some(armed) = ARMED.get() else { return };
        if armed.name == name && armed.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            die();
        }
    }

    /// Ends the process like a power failure: no destructors, no flush, no exit handlers.
    fn die() -> ! {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort()
    }
}

/// Arms the point `name`: the process is killed when it passes the point for the `nth` time, counted from 1. Only
/// the first call in a process has an effect. Does nothing in a release build.
#[inline]
pub fn arm(name: &str, nth: u32) {
    #[cfg(debug_assertions)]
    armed::arm(name, nth);
    #[cfg(not(debug_assertions))]
    let _ = (name, nth);
}

/// Passes the point `name`. Does nothing in a release build.
#[inline]
pub fn point(name: &str) {
    #[cfg(debug_assertions)]
    armed::point(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}
