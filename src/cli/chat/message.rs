//! The one message of a command line: the question, what is in the files, or else what comes through a pipe.

use anyhow::{Context, Result, bail};
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The daemon takes no longer message, in bytes.
const MAX_MESSAGE_BYTES: u64 = 256 * 1024;

/// Puts the message together. A file that is no text, or that is too much, is an error: nothing is said in part.
pub(super) fn compose(question: &[String], files: &[PathBuf]) -> Result<String> {
    let mut parts = Vec::new();
    if !question.is_empty() {
        parts.push(question.join(" "));
    }
    for file in files {
        parts.push(read(file)?);
    }
    if parts.is_empty() {
        parts.push(text("standard input", io::stdin())?);
    }
    let message = parts.join("\n\n");
    if message.len() as u64 > MAX_MESSAGE_BYTES {
        bail!("all together is more than the {} KiB that a message may have", MAX_MESSAGE_BYTES / 1024);
    }
    Ok(message)
}

fn read(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        return text("standard input", io::stdin());
    }
    let name = path.display().to_string();
    text(&name, File::open(path).with_context(|| format!("cannot read {name}"))?)
}

fn text(name: &str, from: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_MESSAGE_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > MAX_MESSAGE_BYTES {
        bail!("{name} has more than the {} KiB that a message may have", MAX_MESSAGE_BYTES / 1024);
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let text = text
        .with_context(|| format!("{name} is no text: send it in a chat, or upload it (docs/http-api.md)"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_and_files_are_one_message_and_nothing_is_said_in_part() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (notes, more) = (file("notes", b"one\ntwo\n"), file("more", "dr\u{fc}ben\r\n".as_bytes()));
        let all = compose(&words("what is this?"), &[notes.clone(), more]).unwrap();
        assert_eq!(all, "what is this?\n\none\ntwo\n\ndr\u{fc}ben");
        assert_eq!(compose(&[], &[notes]).unwrap(), "one\ntwo");
        let fails = |path: PathBuf, expect: &str| {
            let told = format!("{:#}", compose(&words("x"), &[path]).unwrap_err());
            assert!(told.contains(expect), "{told}");
        };
        fails(file("picture", b"\x89PNG\0\xff"), "is no text");
        fails(file("zero", b"a\0b"), "is no text");
        fails(file("large", &vec![b'a'; 256 * 1024 + 1]), "more than the 256 KiB");
        fails(file("nearly", &vec![b'a'; 256 * 1024]), "all together");
        fails(dir.path().join("none"), "cannot read");
        fails(dir.path().to_owned(), "cannot read");
    }
}
