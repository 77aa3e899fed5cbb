//! Images for a model that cannot see: the model gets a note with each message that brings some, and people once in a
//! thread, with the name of a model that can.

use super::{input, shared::Shared};
use crate::bus::InboxItem;
use pudu_client::{
    Authoring, RunTask,
    base::{Human, Message, MessageId, SharedFile},
};
use pudu_texts::Language;

/// Note to the model. Older messages with this note show that people know.
const BLIND: &str = "You cannot see the images among these files: say so, and do not guess what is on them.";

/// Notes on the task's images that its model cannot see them, and returns the notice for people.
pub(super) async fn note_blind(
    shared: &Shared,
    language: Language,
    said: &[InboxItem],
    task: &mut RunTask,
) -> Option<String> {
    if !said.iter().any(input::has_attachments) && !task.input.iter().any(brings_image) {
        return None;
    }
    let state = shared.client.state(&task.thread).await.ok()?;
    let known = state.messages.values().filter_map(|message| match &**message {
        Message::Human(human) => Some(human),
        Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => None,
    });
    let own: Vec<MessageId> = said.iter().map(input::message_id).collect();
    // A restart may have cut the turn after its messages were stored.
    let (again, earlier): (Vec<&Human>, Vec<&Human>) = known.partition(|human| own.contains(&human.id));
    if !task.input.iter().chain(again).any(brings_image) {
        return None;
    }
    let agent = task.agent.as_deref().filter(|_| !matches!(task.authoring, Authoring::New(_)));
    let blind = shared.client.blind_model(task.model.as_deref(), agent, task.agents_of()).await?;
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
