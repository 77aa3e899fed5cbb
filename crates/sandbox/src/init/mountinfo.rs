//! Parses the list of mounts. Making a tree read-only takes one call per mount.

use rustix::mount::MountFlags;
use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

/// A mount with its path and flags. The flags cannot be removed in a user namespace and have to be repeated in every
/// change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) at: PathBuf,
    pub(super) flags: MountFlags,
}

/// Parses `/proc/self/mountinfo`. Invalid lines are skipped.
pub(super) fn parse(text: &[u8]) -> Vec<Mounted> {
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

fn line(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|byte| *byte == b' ');
    let at = fields.nth(4)?;
    let options = fields.next()?;
    let at = PathBuf::from(OsString::from_vec(unescaped(at)));
    let known = options.split(|byte| *byte == b',').filter_map(flag);
    Some(Mounted { at, flags: known.fold(MountFlags::empty(), |all, flag| all | flag) })
}

fn flag(option: &[u8]) -> Option<MountFlags> {
    Some(match option {
        b"ro" => MountFlags::RDONLY,
        b"nosuid" => MountFlags::NOSUID,
        b"nodev" => MountFlags::NODEV,
        b"noexec" => MountFlags::NOEXEC,
        b"noatime" => MountFlags::NOATIME,
        b"nodiratime" => MountFlags::NODIRATIME,
        b"relatime" => MountFlags::RELATIME,
        _ => return None,
    })
}

/// Replaces the escapes of space, tab, line break and backslash, which are three octal digits after a backslash.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first == b'\\') {
            Some(byte) => {
                plain.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_parsed_with_their_flags_and_odd_names() {
        let text = b"36 35 98:0 /mnt1 /new/usr rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n\
                     37 36 0:5 / /new/usr/a\\040b\\134c ro,nosuid,nodev - tmpfs none rw\n\
                     broken\n";
        let at = |at: &str, flags| Mounted { at: at.into(), flags };
        let odd = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        assert_eq!(parse(text), [at("/new/usr", MountFlags::NOATIME), at("/new/usr/a b\\c", odd)]);
        assert_eq!(unescaped(b"\\04"), b"\\04");
        assert_eq!(unescaped(b"\\999\\"), b"\\999\\");
    }
}
