//! Shows the model an image, if the model has vision.

use crate::{names::existing, text_file::failed};
use pudu_base::{Image, ToolCx, ToolError, ToolOutput, TypedTool, image_kind};
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum size of an image that providers accept, in bytes.
const MAX_IMAGE_BYTES: u64 = 20 * 1024 * 1024;

pub(crate) struct ViewImage;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The image's absolute path: PNG, JPEG, WebP or GIF.
    image_path: String,
}

impl TypedTool for ViewImage {
    type Args = Args;
    const NAME: &'static str = "view_image";
    const DESCRIPTION: &'static str = "Shows you an image file. You see the image in the next step.";
    const IDEMPOTENT: bool = true;

    async fn run(&self, mut args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        args.image_path = existing(&*cx.sandbox, args.image_path).await;
        let bytes = cx.sandbox.read(&args.image_path, MAX_IMAGE_BYTES).await.map_err(failed)?;
        let Some(mime) = image_kind(&bytes) else {
            return Err(ToolError(format!("{} is not a PNG, JPEG, WebP or GIF image", args.image_path)));
        };
        let text = format!("{} ({mime}, {} bytes) is shown to you.", args.image_path, bytes.len());
        let images = vec![Image { path: args.image_path, mime: mime.to_owned() }];
        Ok(ToolOutput { text, images, ..ToolOutput::default() })
    }
}
