//! Images in results: they are stored among the thread's files and shown to the model from there. A model without
//! vision gets a note instead.

use super::Results;
use pudu_base::{Image, ToolOutput, image_kind};
use std::fmt::Write;

/// Note for a model without vision.
const BLIND: &str = "You cannot see images: say so, and do not guess what they show.";

impl Results {
    /// Stores the images in a result, for a model that may lack vision, and notes their paths.
    pub(crate) async fn keep_images(&self, tool: &str, mut output: ToolOutput, sees: bool) -> ToolOutput {
        for (at, bytes) in std::mem::take(&mut output.attached).into_iter().enumerate() {
            let number = at + 1;
            let Some(mime) = image_kind(&bytes) else { continue };
            let ending = mime.trim_start_matches("image/");
            let noted = match self.files.keep_image(tool, ending, bytes).await {
                Ok(path) => {
                    let noted = write!(output.text, "\n[image {number} is in {path}]");
                    output.images.push(Image { path, mime: mime.to_owned() });
                    noted
                }
                Err(error) => {
                    tracing::warn!(tool, %error, "failed to store image of result");
                    write!(output.text, "\n[image {number} cannot be shown: {error}]")
                }
            };
            // Writing to a String cannot fail.
            noted.ok();
        }
        if !sees && !std::mem::take(&mut output.images).is_empty() {
            let _ = write!(output.text, "\n[{BLIND}]");
        }
        output
    }
}
