//! Protocol of daemon and sandbox over the control socket: one plan one way, a few messages the other. Each
//! is JSON behind its length.

use super::error::{InitError, Trying};
use crate::{CommandLimits, mounts::Mount};
use rustix::{
    io::{IoSlice, retry_on_intr},
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::Read,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
};

/// The name under which this program is started as sandbox. An argument of a person's cannot be taken for it.
pub(crate) const NAME: &str = "pudu-sandbox";
/// Maximum size of a message, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// All that a sandbox has to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JailPlan {
    /// Script that the shell runs.
    pub(crate) script: String,
    /// The command's whole environment.
    pub(crate) environment: Vec<(String, String)>,
    /// The mounts, parents before children.
    pub(crate) mounts: Vec<Mount>,
    /// Its resource limits.
    pub(crate) limits: CommandLimits,
    /// User and group of the command towards the kernel.
    pub(crate) identity: (u32, u32),
    /// Whether the daemon is root and the sandbox still has to stop being it.
    pub(crate) from_root: bool,
    /// Kind of network.
    pub(crate) net: Net,
    /// Whether a control group counts the command's resources, including memory that belongs to no process.
    pub(crate) counted: bool,
}

/// Byte with which the daemon stops a running command's processes while its files are counted.
pub(crate) const HOLD: u8 = b'h';
/// Byte with which the daemon lets them go on.
pub(crate) const GO_ON: u8 = b'g';

/// Kind of network of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Net {
    /// A loopback of its own.
    Loopback,
    /// The same, and a listener on it that the daemon serves.
    Served,
    /// The machine's own.
    Shared,
}

/// Message of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InitMessage {
    /// Carries the listener, if one was wanted. Sent before any right is given up: a process that shares a user with
    /// the commands could not hand it over any more once they have their maximum number of descriptors in flight.
    Listening,
    /// Everything is in place.
    Ready,
    /// It could not be built.
    Failed(String),
    /// The command exited.
    Exited(i32),
    /// The command was killed by a signal.
    Signalled(i32),
    /// All its processes together took more memory than allowed.
    Memory,
}

/// Puts the length before a message.
pub(crate) fn framed(message: &impl Serialize) -> Result<Vec<u8>, InitError> {
    let body = serde_json::to_vec(message).trying("writing a message")?;
    let length = u32::try_from(body.len()).trying("writing a message")?;
    Ok([&length.to_le_bytes()[..], &body].concat())
}

/// Reads one message and nothing behind it.
pub(crate) fn read<T: DeserializeOwned>(mut from: impl Read) -> Result<T, InitError> {
    let mut length = [0; 4];
    from.read_exact(&mut length).trying("reading the plan")?;
    let length = usize::try_from(u32::from_le_bytes(length)).trying("reading the plan")?;
    if length > MAX_MESSAGE_BYTES {
        return Err(InitError(format!("the plan has {length} bytes, more than {MAX_MESSAGE_BYTES}")));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).trying("reading the plan")?;
    serde_json::from_slice(&body).trying("understanding the plan")
}

/// Takes the first whole message out of the received bytes; `None` if more has to come.
pub(crate) fn take(buffer: &mut Vec<u8>) -> Result<Option<InitMessage>, InitError> {
    let Some((length, rest)) = buffer.split_first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(*length)).trying("reading a word")?;
    if length > MAX_MESSAGE_BYTES {
        return Err(InitError(format!("a word of {length} bytes")));
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    let word = serde_json::from_slice(body).trying("understanding a word");
    buffer.drain(..4 + length);
    word.map(Some)
}

/// Sends a message, with a descriptor if there is one.
pub(crate) fn say(
    to: &UnixStream,
    word: &InitMessage,
    with: Option<BorrowedFd<'_>>,
) -> Result<(), InitError> {
    let bytes = framed(word)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = with.into_iter().collect();
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let mut sent = 0;
    while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
        let flags = SendFlags::NOSIGNAL;
        let slices = [IoSlice::new(rest)];
        sent +=
            retry_on_intr(|| sendmsg(to.as_fd(), &slices, &mut control, flags)).trying("saying a word")?;
        control.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_whole_or_not_at_all() {
        let mut bytes = framed(&InitMessage::Exited(3)).unwrap();
        bytes.extend(framed(&InitMessage::Memory).unwrap());
        assert_eq!(read::<InitMessage>(&bytes[..]).unwrap(), InitMessage::Exited(3));
        let mut buffer = bytes[..7].to_vec();
        assert_eq!(take(&mut buffer).unwrap(), None);
        buffer.extend(&bytes[7..]);
        assert_eq!(take(&mut buffer).unwrap(), Some(InitMessage::Exited(3)));
        assert_eq!(take(&mut buffer).unwrap(), Some(InitMessage::Memory));
        assert_eq!((take(&mut buffer).unwrap(), buffer), (None, Vec::new()));
    }

    #[test]
    fn garbage_and_giants_are_refused() {
        for bytes in [&b"\xff\xff\xff\xff"[..], b"\x02\0\0\0{}", b"\x01\0\0\0\xff"] {
            assert!(read::<InitMessage>(bytes).is_err(), "{bytes:?}");
            assert!(take(&mut bytes.to_vec()).is_err(), "{bytes:?}");
        }
        assert!(read::<InitMessage>(&b"\x05\0\0\0{}"[..]).is_err());
    }
}
