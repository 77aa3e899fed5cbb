//! Images made by the model: files of the thread, named in the answer and sent with it.

use crate::{RunAgent, RunState};
use pudu_base::{Image, MessageId, image_kind};

/// Folder of files for users.
const OUTPUTS: &str = "/mnt/user-data/outputs";
/// Prefix of each image's name.
const PREFIX: &str = "image-";
/// Number of random digits in an image's name.
const DIGITS: usize = 12;

/// Stores images and names each in the answer. Returns their paths, including those that could not be stored.
pub(crate) async fn keep(agent: &RunAgent, run_state: &mut RunState, images: Vec<Vec<u8>>) -> Vec<String> {
    let mut paths = Vec::new();
    for bytes in images {
        let Some(kind) = image_kind(&bytes) else { continue };
        let name = name(kind.trim_start_matches("image/"));
        let path = format!("{OUTPUTS}/{name}");
        if let Err(error) = agent.sandbox.write(&path, &bytes, false).await {
            // The answer names it anyway: its delivery reports the missing file in the user's language.
            tracing::warn!(%error, bytes = bytes.len(), "failed to store image of model");
        }
        let gap = if run_state.answer_bytes() == 0 { "" } else { "\n\n" };
        run_state.append_text(format!("{gap}![{name}]({path})"));
        paths.push(path);
    }
    paths
}

/// Returns an unused file name.
fn name(ending: &str) -> String {
    let id = MessageId::fresh().to_string();
    // The end of an id is random, its beginning is a timestamp.
    let digits = id.split_at(id.len().saturating_sub(DIGITS)).1;
    format!("{PREFIX}{digits}.{ending}")
}

/// Returns the images in an answer that the model made itself, so that it can be asked to change them.
pub(crate) fn named_in(text: &str) -> Vec<Image> {
    let begin = format!("]({OUTPUTS}/{PREFIX}");
    let image = |rest: &str| {
        let (digits, ending) = rest.split_once(')')?.0.split_once('.')?;
        let is_own = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let known = is_own && ["png", "jpeg", "webp", "gif"].contains(&ending);
        let path = format!("{OUTPUTS}/{PREFIX}{digits}.{ending}");
        known.then(|| Image { path, mime: format!("image/{ending}") })
    };
    text.split(&begin).skip(1).filter_map(image).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Bench, ScriptedReply};
    use pudu_base::{Delta, Finish, RunEvent};

    #[tokio::test]
    async fn an_image_that_cannot_be_stored_is_named_and_reported_as_missing() {
        let image = Ok(Delta::Image(b"\x89PNG\r\n\x1a\n".to_vec()));
        let bench = Bench::new(vec![ScriptedReply::Says(vec![image, Ok(Delta::Finish(Finish::Complete))])]);
        let events = bench.events(Some("draw a dot")).await;
        let handed = |event| match event {
            RunEvent::Artifacts { paths } => Some(paths),
            _ => None,
        };
        let handed: Vec<String> = events.into_iter().filter_map(handed).flatten().collect();
        let paths: Vec<String> =
            named_in(&bench.thread().concat()).into_iter().map(|image| image.path).collect();
        assert_eq!((handed.len(), handed), (1, paths));
    }

    #[test]
    fn images_of_an_answer_are_found_by_their_names() {
        let (one, two) = (name("png"), name("jpeg"));
        let text = format!(
            "Here: ![{one}]({OUTPUTS}/{one})\n\n![{two}]({OUTPUTS}/{two}) [a]({OUTPUTS}/image-1.png) [b]({OUTPUTS}/image-"
        );
        let found: Vec<_> = named_in(&text).into_iter().map(|image| (image.path, image.mime)).collect();
        let expect = |name: &str, mime: &str| (format!("{OUTPUTS}/{name}"), mime.to_owned());
        assert_eq!(found, [expect(&one, "image/png"), expect(&two, "image/jpeg")]);
        assert_ne!(name("png"), name("png"));
    }
}
