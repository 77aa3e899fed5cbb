//! The invariants of a simulation.

use crate::{
    schedule,
    story::{Said, Story, Talk, names},
    world::with,
};
use pudu_sim::telegram::{MessageId, Seen, View};
use rusqlite::{Connection, OpenFlags};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

/// Each command, and the beginnings of its answers. The last one of `/stop` is also the text of a stopped run.
const COMMANDS: [(&str, &[&str]); 3] = [
    ("/new", &["New conversation started."]),
    ("/stop", &["Nothing is running.", "Stopped. ", "Stopped."]),
    ("/mode queue", &["Mode queue: a new message waits until I am done."]),
];
/// Commands that stop a run and drop the messages that wait.
const STOPS: [&str; 2] = ["/stop", "/new"];
/// Beginnings of an answer that is an error.
const ERRORS: [&str; 4] = [
    "The model is busy",
    "The model cannot be reached.",
    "The model's provider failed",
    "The connection to the model broke.",
];

/// Time for which a reply that cannot be delivered holds newer ones back.
const ORDER_TIMEOUT: Duration = Duration::from_secs(30);

/// Checks that each message has exactly one final outcome.
pub fn chats(story: &Story) -> Result<(), String> {
    let telegram = with(|world| world.telegram.clone());
    for talk in &story.talks {
        let answers = telegram.look(|view| view.answers(talk.chat));
        let checked = chat(talk, &answers).and_then(|()| telegram.look(|view| order(talk, view, &answers)));
        checked.map_err(|why| format!("chat {}: {why}", talk.chat))?;
    }
    Ok(())
}

/// Checks that answers appear in the order of the messages, except those that could not be delivered for a while.
fn order(talk: &Talk, view: &View<'_>, answers: &[Seen]) -> Result<(), String> {
    let appeared = |id| view.history(talk.chat, id).first().map(|shown| shown.at);
    let answered =
        answers.iter().flat_map(|answer| names(&answer.text).into_iter().map(|name| (name, answer.id)));
    let answered: Vec<(String, MessageId)> = answered.collect();
    for (at, (name, id)) in answered.iter().enumerate() {
        let late = answered[at..].iter().filter(|(later, _)| number(later) < number(name));
        for (late, _) in late {
            let asked = talk.said.iter().find(|said| names(&said.text).contains(late));
            let waited = asked.and_then(|said| Some(appeared(*id)?.duration_since(appeared(said.id)?)));
            if waited.is_none_or(|waited| waited < ORDER_TIMEOUT) {
                return Err(format!("{late} is answered below {name}"));
            }
        }
    }
    Ok(())
}

fn chat(talk: &Talk, answers: &[Seen]) -> Result<(), String> {
    let grows = |answer: &&Seen| answer.buttons.iter().flatten().any(|button| button.text == "Stop");
    if let Some(growing) = answers.iter().find(grows) {
        return Err(format!("{:?} is not final", growing.text));
    }
    let mut left: Vec<&str> = answers.iter().map(|answer| answer.text.trim()).collect();
    let stops = |said: &&Said| STOPS.contains(&said.text.as_str());
    schedule::take_answers(talk, &mut left, talk.said.iter().any(|said| stops(&said)))?;
    for (command, beginnings) in COMMANDS {
        let count = talk.said.iter().filter(|said| said.text == command).count();
        for _ in 0..count {
            let place = |beginning: &&str| left.iter().position(|text| text.starts_with(*beginning));
            let at = beginnings.iter().find_map(place).ok_or_else(|| format!("{command} has no answer"))?;
            left.remove(at);
        }
    }
    let mut seen: Vec<String> = Vec::new();
    let (mut stopped, mut failed) = (0, 0);
    for text in left {
        let named = names(text);
        if ERRORS.iter().any(|error| text.contains(error)) {
            failed += 1;
        } else if text.ends_with("Stopped.") {
            stopped += 1;
        } else if named.is_empty() || !text.starts_with("re ") {
            return Err(format!("{text:?} is no answer"));
        }
        seen.extend(named);
    }
    if stopped > talk.said.iter().filter(stops).count() {
        return Err(format!("{stopped} runs are stopped"));
    }
    let twice: Vec<_> =
        seen.iter().filter(|name| seen.iter().filter(|other| other == name).count() > 1).collect();
    if !twice.is_empty() {
        return Err(format!("{twice:?} are answered more than once"));
    }
    let seen: BTreeSet<String> = seen.into_iter().collect();
    let has_outcome = |at: usize, said: &Said| {
        let is_stopped = || talk.said[at..].iter().any(|later| stops(&later));
        names(&said.text).iter().all(|name| seen.contains(name)) || is_stopped()
    };
    let lost: Vec<_> = talk.said.iter().enumerate().filter(|(at, said)| !has_outcome(*at, said)).collect();
    // One error may be the outcome of several messages.
    if failed == 0 && !lost.is_empty() {
        return Err(format!(
            "{:?} have no answer",
            lost.iter().map(|(_, said)| &said.text).collect::<Vec<_>>()
        ));
    }
    Ok(())
}

fn number(name: &str) -> u32 {
    name.split_once('-').and_then(|(_, n)| n.parse().ok()).unwrap_or_default()
}

/// Checks the home of a daemon that has ended.
pub fn home(home: &Path, story: &Story) -> Result<(), String> {
    notes(home)?;
    secrets(home)?;
    database(&home.join(".pudu/data/pudu.db"), story)
}

/// Checks that no tool ran twice.
fn notes(home: &Path) -> Result<(), String> {
    let list = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let users = list(&home.join(".pudu/users")).map(|user| user.path().join("threads"));
    let threads: Vec<_> = users.flat_map(|threads| list(&threads).collect::<Vec<_>>()).collect();
    let mut times = BTreeMap::<String, usize>::new();
    for thread in threads {
        let notes = std::fs::read_to_string(thread.path().join("user-data/outputs/notes.txt"));
        for line in notes.unwrap_or_default().lines() {
            *times.entry(line.to_owned()).or_default() += 1;
        }
    }
    match times.iter().find(|(_, times)| **times > 1) {
        Some((line, times)) => Err(format!("the tool noted {line:?} {times} times")),
        None => Ok(()),
    }
}

fn secrets(home: &Path) -> Result<(), String> {
    let log = std::fs::read_to_string(home.join("log")).unwrap_or_default();
    let token = with(|world| world.telegram.token());
    let (_, secret) = token.split_once(':').unwrap();
    match log.contains(secret) || log.contains(crate::life::API_KEY) {
        true => Err("a secret is in the log".to_owned()),
        false => Ok(()),
    }
}

/// Checks that nothing is left to do, and that the log of threads has each visible answer.
fn database(file: &Path, story: &Story) -> Result<(), String> {
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    for (what, table) in [
        ("events are not done", "inbox WHERE done IS NULL"),
        ("replies are not delivered", "turns WHERE delivered IS NULL"),
        ("runs have not ended", "runs WHERE ended IS NULL"),
    ] {
        let count: i64 =
            db.query_row(&format!("SELECT COUNT(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        if count > 0 {
            return Err(format!("{count} {what}"));
        }
    }
    schedule::check_database(&db, story)?;
    let mut log = db.prepare("SELECT COUNT(*) FROM log WHERE instr(body, ?) > 0").unwrap();
    let telegram = with(|world| world.telegram.clone());
    for answer in story.talks.iter().flat_map(|talk| telegram.look(|view| view.answers(talk.chat))) {
        let text = answer.text.split("\n\n").next().unwrap_or_default();
        if text.starts_with("re ") && log.query_row([text], |row| row.get::<_, i64>(0)).unwrap() == 0 {
            return Err(format!("{text:?} is in no log of a thread"));
        }
    }
    Ok(())
}
