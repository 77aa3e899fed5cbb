//! Enables the loopback interface of a new network namespace, with a netlink request to the routing table because there
//! is no system call for it.

use rustix::{
    io,
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with},
};

/// `RTM_NEWLINK`, which changes an interface.
const NEW_LINK: u16 = 16;
/// `NLM_F_REQUEST | NLM_F_ACK`.
const REQUEST_WITH_ANSWER: u16 = 0x5;
/// `NLMSG_ERROR`, which also reports success.
const ANSWER: u16 = 2;
/// Index of the loopback interface, which is the first in every namespace.
const LOOPBACK: i32 = 1;
/// `IFF_UP`.
const UP: u32 = 1;

/// Enables the interface.
pub(super) fn enable() -> io::Result<()> {
    // Protocol 0 is the routing table.
    let route = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&route, &request(), SendFlags::empty())?;
    let mut answer = [0; 64];
    let (_, length) = recv(&route, &mut answer, RecvFlags::empty())?;
    understand(answer.get(..length).unwrap_or_default())
}

/// Limits the buffers of TCP connections in this namespace to the size of other sockets' buffers, because they do not
/// count as the memory of any process. Best effort, because the settings may be read-only.
pub(super) fn limit_buffers() {
    for name in ["tcp_rmem", "tcp_wmem"] {
        std::fs::write(format!("/proc/sys/net/ipv4/{name}"), "4096 65536 212992").ok();
    }
}

/// Returns an `nlmsghdr` and an `ifinfomsg` in the machine's byte order.
fn request() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(32);
    bytes.extend(32_u32.to_ne_bytes());
    bytes.extend(NEW_LINK.to_ne_bytes());
    bytes.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    bytes.extend([0; 8]); // sequence, port
    bytes.extend([0; 4]); // family, padding, type
    bytes.extend(LOOPBACK.to_ne_bytes());
    bytes.extend(UP.to_ne_bytes()); // flags
    bytes.extend(UP.to_ne_bytes()); // flags to change
    bytes
}

fn understand(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, code) {
        (Some(ANSWER), Some(0)) => Ok(()),
        (Some(ANSWER), Some(code)) => Err(io::Errno::from_raw_os_error(code.saturating_neg())),
        _ => Err(io::Errno::BADMSG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_answer_is_parsed() {
        let answer = |kind: u16, code: i32| {
            let mut bytes = vec![0; 36];
            bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
            bytes[16..20].copy_from_slice(&code.to_ne_bytes());
            understand(&bytes)
        };
        assert_eq!(request().len(), 32);
        assert_eq!(answer(ANSWER, 0), Ok(()));
        assert_eq!(answer(ANSWER, -1), Err(io::Errno::PERM));
        assert_eq!(answer(3, 0), Err(io::Errno::BADMSG));
        assert_eq!(understand(b"cut"), Err(io::Errno::BADMSG));
    }
}
