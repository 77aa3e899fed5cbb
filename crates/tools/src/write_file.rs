//! Writes a text file.

use crate::{
    edit::{self, EditedFile},
    line_ends::like,
    mark::{knows, mark},
    names::existing,
    text_file::{MAX_FILE_BYTES, check_size, failed, unencodable},
};
use pudu_base::{SandboxError, ToolCx, ToolError, ToolOutput, TypedTool};
use pudu_documents::text::TextFile;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file's absolute path. Missing folders are created.
    path: String,
    /// The text to write.
    content: String,
    /// Whether to add to the end of the file instead of replacing it.
    #[serde(default)]
    append: bool,
}

impl TypedTool for WriteFile {
    type Args = Args;
    const NAME: &'static str = "write_file";
    const DESCRIPTION: &'static str = "Writes a text file, or appends to it. Read an existing file before \
                                       you replace it or append to it.";
    const HAS_PURPOSE: bool = true;

    async fn run(&self, mut args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        args.path = existing(&*cx.sandbox, args.path).await;
        check_size(&args.path, args.content.len() as u64)?;
        let mut file = edit::alone(cx, &args.path).await;
        let before = known(&file, &args, cx).await?;
        let (content, note) = content(&args, before.as_deref())?;
        cx.sandbox.write(&args.path, &content, args.append).await.map_err(failed)?;
        let Some(before) = before else { return Ok(note.into()) };
        let prefix = if args.append { before.as_slice() } else { &[] };
        let now = [prefix, &content].concat();
        file.changed(&before, &now);
        let updates = vec![mark(&args.path, &now)];
        Ok(ToolOutput { text: note, updates, ..ToolOutput::default() })
    }
}

/// Returns the bytes to write and the result for the model. Appended text gets the encoding and line ends of the file.
fn content(args: &Args, before: Option<&[u8]>) -> Result<(Vec<u8>, String), ToolError> {
    let as_written = args.content.as_bytes().to_vec();
    let Some(file) = before.and_then(|bytes| TextFile::read(bytes.to_vec()).ok()) else {
        return Ok((as_written, "OK".to_owned()));
    };
    if !args.append {
        let name = file.encoding.name();
        let note = if file.encoding.is_utf8() {
            "OK".to_owned()
        } else {
            format!("OK: the encoding changed from {name} to UTF-8")
        };
        return Ok((as_written, note));
    }
    let content = file.encoding.encode_addition(&like(&args.content, &file.text));
    Ok((content.map_err(|error| unencodable(&args.path, error))?, "OK".to_owned()))
}

/// Fails if the agent does not know the contents that it would replace or extend. Returns the current contents; `None`
/// if the file is too large to read, in which case it can still be appended to.
async fn known(file: &EditedFile, args: &Args, cx: &ToolCx) -> Result<Option<Vec<u8>>, ToolError> {
    match cx.sandbox.read(&args.path, MAX_FILE_BYTES).await {
        Ok(bytes) if bytes.is_empty() => Ok(Some(bytes)),
        Ok(bytes) => knows(cx, file, &args.path, &bytes).map(|()| Some(bytes)),
        Err(SandboxError::Missing { .. }) => Ok(Some(Vec::new())),
        Err(SandboxError::TooLarge { .. }) if args.append => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
