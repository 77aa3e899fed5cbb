//! Protocol between the daemon and a sandbox over the control socket: the daemon sends a plan, and the sandbox a few
//! messages. Each is JSON with a length prefix.

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

/// The program's name (`argv[0]`) when it is started as a sandbox. A user's argument cannot be mistaken for it.
pub(crate) const NAME: &str = "pudu-sandbox";
/// Maximum size of a message, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// Complete specification of a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JailPlan {
    /// Script for the shell.
    pub(crate) script: String,
    /// The complete environment of the command.
    pub(crate) environment: Vec<(String, String)>,
    /// The mounts, with parents before children.
    pub(crate) mounts: Vec<Mount>,
    /// The command's resource limits.
    pub(crate) limits: CommandLimits,
    /// User and group of the command.
    pub(crate) identity: (u32, u32),
    /// Whether the daemon is root, so that the sandbox has to change the user.
    pub(crate) from_root: bool,
    /// Network access.
    pub(crate) net: Net,
    /// Whether a control group counts the command's resources, including kernel memory outside of processes.
    pub(crate) counted: bool,
}

/// Byte that the daemon sends to pause a command's processes while the files are counted.
pub(crate) const HOLD: u8 = b'h';
/// Byte that the daemon sends to resume the processes.
pub(crate) const GO_ON: u8 = b'g';

/// Network access of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Net {
    /// Only its own loopback interface.
    Loopback,
    /// Its own loopback interface, with a listener that the daemon serves.
    Served,
    /// The machine's network.
    Shared,
}

/// Message from a sandbox to the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InitMessage {
    /// Carries the listener, if one was requested. It is sent before privileges are dropped: a process with the same
    /// user as the commands could not send it if they have exhausted the limit on descriptors in flight.
    Listening,
    /// The sandbox is ready.
    Ready,
    /// The sandbox could not be built.
    Failed(String),
    /// The command exited.
    Exited(i32),
    /// The command was killed by a signal.
    Signalled(i32),
    /// The processes exceeded the memory limit.
    Memory,
}

/// Adds the length prefix to a message.
pub(crate) fn framed(message: &impl Serialize) -> Result<Vec<u8>, InitError> {
    let body = serde_json::to_vec(message).trying("cannot encode a message")?;
    let length = u32::try_from(body.len()).trying("cannot encode a message")?;
    Ok([&length.to_le_bytes()[..], &body].concat())
}

/// Reads exactly one message.
pub(crate) fn read<T: DeserializeOwned>(mut from: impl Read) -> Result<T, InitError> {
    let mut length = [0; 4];
    from.read_exact(&mut length).trying("cannot read the plan")?;
    let length = usize::try_from(u32::from_le_bytes(length)).trying("cannot read the plan")?;
    if length > MAX_MESSAGE_BYTES {
        return Err(InitError(format!("the plan has {length} bytes, more than {MAX_MESSAGE_BYTES}")));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).trying("cannot read the plan")?;
    serde_json::from_slice(&body).trying("cannot decode the plan")
}

/// Removes the first message from the received bytes; `None` if it is still incomplete.
pub(crate) fn take_message(buffer: &mut Vec<u8>) -> Result<Option<InitMessage>, InitError> {
    let Some((length, rest)) = buffer.split_first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(*length)).trying("cannot read a message")?;
    if length > MAX_MESSAGE_BYTES {
        return Err(InitError(format!("a message has {length} bytes, more than {MAX_MESSAGE_BYTES}")));
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    let word = serde_json::from_slice(body).trying("cannot decode a message");
    buffer.drain(..4 + length);
    word.map(Some)
}

/// Sends a message with an optional descriptor.
pub(crate) fn send(
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
        sent += retry_on_intr(|| sendmsg(to.as_fd(), &slices, &mut control, flags))
            .trying("cannot send a message")?;
        control.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_messages_are_taken() {
        let mut bytes = framed(&InitMessage::Exited(3)).unwrap();
        bytes.extend(framed(&InitMessage::Memory).unwrap());
        assert_eq!(read::<InitMessage>(&bytes[..]).unwrap(), InitMessage::Exited(3));
        let mut buffer = bytes[..7].to_vec();
        assert_eq!(take_message(&mut buffer).unwrap(), None);
        buffer.extend(&bytes[7..]);
        assert_eq!(take_message(&mut buffer).unwrap(), Some(InitMessage::Exited(3)));
        assert_eq!(take_message(&mut buffer).unwrap(), Some(InitMessage::Memory));
        assert_eq!((take_message(&mut buffer).unwrap(), buffer), (None, Vec::new()));
    }

    #[test]
    fn invalid_and_oversized_messages_are_refused() {
        for bytes in [&b"\xff\xff\xff\xff"[..], b"\x02\0\0\0{}", b"\x01\0\0\0\xff"] {
            assert!(read::<InitMessage>(bytes).is_err(), "{bytes:?}");
            assert!(take_message(&mut bytes.to_vec()).is_err(), "{bytes:?}");
        }
        assert!(read::<InitMessage>(&b"\x05\0\0\0{}"[..]).is_err());
    }
}
