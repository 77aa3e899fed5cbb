//! Permissions of file tools. If the daemon is root, they are those of the user that runs commands, and the kernel
//! enforces them as it does for commands.
//!
//! A separate thread accesses files as that user and has none of root's other privileges. It ends with the operation
//! and never becomes root again, so no privilege has to be restored. Deliberately absent: checks of modes or owners.
//! Only Linux has users per thread; on other systems, files are accessed as the daemon's user.

use std::io;

/// User and group that own a thread's files, if they differ from the daemon's.
pub(crate) type Owner = Option<(u32, u32)>;

/// Runs file operations with an owner's permissions, or with unchanged permissions if there is no owner.
///
/// # Errors
/// When the permissions cannot be dropped, or the thread panics.
#[cfg(target_os = "linux")]
pub(crate) fn with<T: Send>(owner: Owner, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let Some((user, group)) = owner else { return Ok(work()) };
    std::thread::scope(|scope| {
        let work = move || give_up(user, group).map(|()| work());
        let thread = std::thread::Builder::new().name("pudu-files".to_owned()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the file operation panicked")))
    })
}

/// Runs file operations as the daemon's user.
#[cfg(not(target_os = "linux"))]
pub(crate) fn with<T: Send>(_: Owner, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    Ok(work())
}

/// Returns whether the daemon can access files as another user and change their owner. Root can, unless it lacks the
/// capabilities.
#[cfg(target_os = "linux")]
#[must_use]
pub fn can_change_user() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::CHOWN;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Returns `false`, because only Linux has users per thread.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn can_change_user() -> bool {
    false
}

/// Permanently changes this thread's user for file access.
#[cfg(target_os = "linux")]
fn give_up(user: u32, group: u32) -> io::Result<()> {
    use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_thread_groups};
    // A raw system call, because the C library would change all threads.
    set_thread_groups(&[])?;
    let (group, user) = (Gid::from_raw(group), Uid::from_raw(user));
    setfsgid(group);
    setfsuid(user);
    // Neither call reports success. When called again, each returns the thread's current ID.
    if setfsgid(group) != group || setfsuid(user) != user {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn work_runs_as_the_owner_and_the_daemon_keeps_its_user() {
        if !rustix::process::geteuid().is_root() {
            return println!("skipped: only root can work as somebody else");
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let [secret, made] = ["secret", "made"].map(|name| folder.path().join(name));
        std::fs::write(&secret, "of root").unwrap();
        std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
        let owner = Some((65_533, 65_534));
        let read = with(owner, || std::fs::read(&secret).map_err(|error| error.kind())).unwrap();
        assert_eq!(read, Err(io::ErrorKind::PermissionDenied));
        with(owner, || std::fs::write(&made, "mine")).unwrap().unwrap();
        let meta = std::fs::metadata(&made).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (65_533, 65_534));
        let is_refused = with(owner, || std::os::unix::fs::chown(&made, Some(0), None).is_err()).unwrap();
        assert!(is_refused, "what is made cannot be given to root");
        assert!(with::<()>(owner, || panic!("broken")).is_err());
        assert_eq!(std::fs::read(&secret).unwrap(), b"of root");
        assert_eq!(with(None, || std::fs::read(&secret).unwrap()).unwrap(), b"of root");
    }
}
