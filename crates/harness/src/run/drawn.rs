//! Images that the model made: files of the thread, named in the answer and sent with it.

use crate::{Agent, RunState};
use pudu_base::{MessageId, image_kind};

/// Folder of files for people.
const OUTPUTS: &str = "/mnt/user-data/outputs";
/// Number of random digits in the name of an image.
const DIGITS: usize = 12;

/// Stores images and names each in the answer. Returns their paths.
pub(super) async fn keep(agent: &Agent, run_state: &mut RunState, images: Vec<Vec<u8>>) -> Vec<String> {
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
    format!("image-{digits}.{ending}")
}
