//! Images for a model without vision: the model gets a note with each message that has images. People get a notice once
//! in a thread, with the name of a model that can see them.

use super::{input, shared::Shared};
use crate::bus::InboxItem;
use pudu_agent::{Authoring, RunTask};
use pudu_base::{Human, Message, MessageId, SharedFile};
use pudu_texts::Language;

/// Note to the model. If an older message contains it, people have already seen the notice.
const BLIND: &str = "You cannot see the images among these files: say so, and do not guess what is on them.";

/// Adds a note to the task's messages with images if the model cannot see them. Returns the notice for people.
pub(super) async fn note_blind(
    shared: &Shared,
    language: Language,
    said: &[InboxItem],
    task: &mut RunTask,
) -> Option<String> {
    if !said.iter().any(input::has_attachments) && !task.input.iter().any(brings_image) {
        return None;
    }
    let state = shared.agent.state(&task.thread).await.ok()?;
    let known = state.messages.values().filter_map(|message| match &**message {
        Message::Human(human) => Some(human),
        Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => None,
    });
    let own: Vec<MessageId> = said.iter().map(input::message_id).collect();
    // A restart may have interrupted the turn after its messages were stored.
    let (again, earlier): (Vec<&Human>, Vec<&Human>) = known.partition(|human| own.contains(&human.id));
    if !task.input.iter().chain(again).any(brings_image) {
        return None;
    }
    let agent = task.agent.as_deref().filter(|_| !matches!(task.authoring, Authoring::New(_)));
    let blind = shared.agent.blind_model(task.model.as_deref(), agent, task.agents_of()).await?;
    for human in task.input.iter_mut().filter(|human| brings_image(human)) {
        human.notes.push(BLIND.to_owned());
    }
    if earlier.iter().any(|human| human.notes.iter().any(|note| note == BLIND)) {
        return None;
    }
    Some(match blind.seeing {
        Some(seeing) => language.blind_model(&blind.name, seeing),
        None => language.blind_models(&blind.name),
    })
}

fn brings_image(human: &Human) -> bool {
    human.files.iter().any(|file: &SharedFile| file.image().is_some())
}
