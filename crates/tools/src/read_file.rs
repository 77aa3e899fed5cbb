//! Reads a text file or some of its lines. An image is shown to the model.

use crate::{
    line_ends::unify,
    mark::mark,
    names::existing,
    text_file::{read, text, with_notes},
};
use pudu_base::{Cut, Image, ResultOrigin, ToolCx, ToolError, ToolOutput, TypedTool, image_kind};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) struct ReadFile(pub(crate) usize);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file's absolute path.
    path: String,
    /// The first line to read, from 1. Default: the beginning of the file.
    start_line: Option<usize>,
    /// The last line to read. Default: the end of the file.
    end_line: Option<usize>,
    /// Number of characters to skip first, to continue in lines that are too long to be shown in full.
    offset: Option<usize>,
}

impl TypedTool for ReadFile {
    type Args = Args;
    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str = "Reads a text file, or a range of its lines.";
    const IDEMPOTENT: bool = true;
    const HAS_PURPOSE: bool = true;
    const ORIGIN: ResultOrigin = ResultOrigin::Files;

    async fn run(&self, mut args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        args.path = existing(&*cx.sandbox, args.path).await;
        let bytes = read(&*cx.sandbox, &args.path).await?;
        if let Some(mime) = image_kind(&bytes) {
            let text = format!("{} is an image ({mime}, {} bytes).", args.path, bytes.len());
            let images = vec![Image { path: args.path, mime: mime.to_owned() }];
            return Ok(ToolOutput { text, images, ..ToolOutput::default() });
        }
        let file = text(bytes, &args.path)?;
        let updates = vec![mark(&args.path, file.bytes())];
        let text = unify(&file.text).into_owned();
        let text = match (args.start_line, args.end_line) {
            _ if text.is_empty() => "(empty)".to_owned(),
            (None, None) => text,
            _ => lines(&text, &args)?,
        };
        let text = with_notes(behind(text, &args)?, &file);
        Ok(ToolOutput { text, cut: Some(Cut::End(self.0)), updates, ..ToolOutput::default() })
    }
}

fn lines(text: &str, args: &Args) -> Result<String, ToolError> {
    let (start, end) = (args.start_line.unwrap_or(1).max(1), args.end_line.unwrap_or(usize::MAX));
    let count = text.lines().count();
    if start > count || end < start {
        let said = format!("{} has only the lines 1 to {count}", args.path);
        return Err(ToolError(said));
    }
    // Built line by line, because a list of all lines may take many times the memory of the file.
    let mut wanted = String::new();
    for (at, line) in text.lines().skip(start - 1).take(end - start + 1).enumerate() {
        if at > 0 {
            wanted.push('\n');
        }
        wanted.push_str(line);
    }
    Ok(wanted)
}

/// Skips the characters before the offset.
fn behind(text: String, args: &Args) -> Result<String, ToolError> {
    let Some(offset @ 1..) = args.offset else { return Ok(text) };
    match text.char_indices().nth(offset) {
        Some((at, _)) => Ok(text.split_at(at).1.to_owned()),
        None => {
            let count = text.chars().count();
            Err(ToolError(format!("the offset is past the end: {} has {count} characters there", args.path)))
        }
    }
}
