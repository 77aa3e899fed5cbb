//! Images that the model made: files of the thread, named in the answer and sent with it.

use crate::{Agent, RunState};
use pudu_base::{Image, MessageId, image_kind};

/// Folder of files for people.
const OUTPUTS: &str = "/mnt/user-data/outputs";
/// Beginning of the name of each image.
const PREFIX: &str = "image-";
/// Number of random digits in the name of an image.
const DIGITS: usize = 12;

/// Stores images and names each in the answer. Returns their paths.
pub(crate) async fn keep(agent: &Agent, run_state: &mut RunState, images: Vec<Vec<u8>>) -> Vec<String> {
    let mut paths = Vec::new();
    for bytes in images {
        let Some(kind) = image_kind(&bytes) else { continue };
        let name = name(kind.trim_start_matches("image/"));
        let path = format!("{OUTPUTS}/{name}");
        let told = match agent.sandbox.write(&path, &bytes, false).await {
            Ok(()) => format!("![{name}]({path})"),
            Err(error) => {
                tracing::warn!(%error, bytes = bytes.len(), "failed to store image of model");
                "[The image that the model made could not be stored.]".to_owned()
            }
        };
        let gap = if run_state.said() == 0 { "" } else { "\n\n" };
        run_state.say(format!("{gap}{told}"));
        if told.starts_with('!') {
            paths.push(path);
        }
    }
    paths
}

/// Makes a name that no file has.
fn name(ending: &str) -> String {
    let id = MessageId::fresh().to_string();
    // The end of an id is random, its beginning the time.
    let digits = id.split_at(id.len().saturating_sub(DIGITS)).1;
    format!("{PREFIX}{digits}.{ending}")
}

/// Returns the images that an answer names as its own, for a model that is asked to change them.
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
