//! Builds the message from the command line: the question, the contents of files, and piped input.

use anyhow::{Context, Result, bail};
use rustix::fs::{FileType, fstat};
use std::{
    fs::File,
    io::Read,
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

/// Maximum length of a message that the daemon accepts, in bytes.
const MAX_MESSAGE_BYTES: u64 = 256 * 1024;
/// Delay before a notice that standard input is being read.
const NOTICE_AFTER: Duration = Duration::from_secs(2);
/// Name for standard input among the files.
const STDIN: &str = "-";

/// Composes the message. A file that is too large or not text is an error, so that no message is sent in part.
pub(super) fn compose<I: Read + AsFd>(
    question: &[String],
    files: &[PathBuf],
    mut input: I,
) -> Result<String> {
    let is_empty = question.is_empty() && files.is_empty();
    let fed = files.iter().all(|file| file != Path::new(STDIN)) && (is_empty || is_fed(&input));
    let mut parts = vec![question.join(" ")];
    for file in files.iter().map(PathBuf::as_path).chain(fed.then_some(Path::new(STDIN))) {
        parts.push(match file == Path::new(STDIN) {
            true => {
                let _notice = Notice::begin();
                text("standard input", &mut input)?
            }
            false => read(file)?,
        });
    }
    parts.retain(|part| !part.is_empty());
    let message = parts.join("\n\n");
    if message.len() as u64 > MAX_MESSAGE_BYTES {
        bail!("the whole message is larger than {} KiB", MAX_MESSAGE_BYTES / 1024);
    }
    Ok(message)
}

/// Delayed notice to a person that an open pipe is being read; cancelled on drop.
struct Notice(#[expect(dead_code, reason = "dropping it wakes the waiting thread")] mpsc::Sender<()>);

impl Notice {
    fn begin() -> Self {
        let (done, waits) = mpsc::channel();
        thread::spawn(move || {
            if waits.recv_timeout(NOTICE_AFTER) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("reading standard input until its end; use `< /dev/null` for none");
            }
        });
        Self(done)
    }
}

/// Returns whether an input is a pipe or a regular file, rather than a terminal or `/dev/null`.
fn is_fed(input: impl AsFd) -> bool {
    let kind = fstat(input).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile))
}

fn read(path: &Path) -> Result<String> {
    let name = path.display().to_string();
    text(&name, File::open(path).with_context(|| format!("cannot read {name}"))?)
}

fn text(name: &str, from: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_MESSAGE_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > MAX_MESSAGE_BYTES {
        bail!("{name} is larger than {} KiB, the limit of a message", MAX_MESSAGE_BYTES / 1024);
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) if is_text(error.as_bytes()) => {
            let before = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            bail!(
                "{name} is not valid UTF-8 text (line {line}); convert it, for example with `iconv -f latin1 -t utf-8`"
            )
        }
        _ => bail!("{name} is not text; send it in a chat, or upload it (docs/http-api.md)"),
    }
}

/// Returns whether bytes look like text in a single-byte encoding.
fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

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
        let composed = |question: &[String], files: &[PathBuf]| {
            compose(question, files, File::open("/dev/null").unwrap())
        };
        let all = composed(&words("what is this?"), &[notes.clone(), more]).unwrap();
        assert_eq!(all, "what is this?\n\none\ntwo\n\ndr\u{fc}ben");
        assert_eq!(composed(&[], &[notes]).unwrap(), "one\ntwo");
        let fails = |path: PathBuf, expect: &str| {
            let told = format!("{:#}", composed(&words("x"), &[path]).unwrap_err());
            assert!(told.contains(expect), "{told}");
        };
        fails(file("picture", b"\x89PNG\0\xff"), "is not text");
        fails(file("zero", b"a\0b"), "is not text");
        fails(file("latin", b"one\nStra\xdfe\n"), "is not valid UTF-8 text (line 2); convert it");
        fails(file("large", &vec![b'a'; 256 * 1024 + 1]), "is larger than 256 KiB");
        fails(file("nearly", &vec![b'a'; 256 * 1024]), "the whole message");
        fails(dir.path().join("none"), "cannot read");
        fails(dir.path().to_owned(), "cannot read");
    }

    #[test]
    fn what_is_fed_stands_behind_the_question_and_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("input");
        std::fs::write(&path, "fed\n").unwrap();
        let (words, dash) = (["why?".to_owned()], [PathBuf::from(STDIN)]);
        let said = |question: &[String], files: &[PathBuf], from: &Path| {
            compose(question, files, File::open(from).unwrap()).unwrap()
        };
        assert_eq!(said(&words, &[], &path), "why?\n\nfed");
        assert_eq!(said(&words, &dash, &path), "why?\n\nfed");
        assert_eq!(said(&[], &dash, &path), "fed");
        assert_eq!(said(&[], &[], &path), "fed");
        assert_eq!(said(&words, &[], Path::new("/dev/null")), "why?");
        assert_eq!(said(&[], &[], Path::new("/dev/null")), "");
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"piped").unwrap();
        drop(writer);
        assert_eq!(compose(&words, &[], reader).unwrap(), "why?\n\npiped");
    }
}
