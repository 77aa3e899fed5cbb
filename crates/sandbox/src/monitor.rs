//! Checks disk usage while a command is running, because not every file system has quotas.
//!
//! A folder that cannot be counted is treated as over the limit, because a command could otherwise hide its files.
//! Counting many files takes longer than writing a large one, so the disk's free space determines when to count: a
//! command cannot have written more than the disk has lost. The command is paused during a long count.

use cap_std::{
    ambient_authority,
    fs::{Dir, MetadataExt, ReadDir},
};
use pudu_base::Killed;
use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Minimum free space on the machine's disk, in bytes.
const MIN_FREE_BYTES: u64 = 256 << 20;
/// Minimum number of free inodes, if the file system counts them.
const MIN_FREE_INODES: u64 = 4096;
/// Bounds of the interval between checks of the free space, which is longer if the command may write more.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(10);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Minimum loss of free space, caused by any process, before the folder is counted again, in bytes.
const MIN_LOSS_BYTES: u64 = 4 << 20;
/// Maximum assumed write rate, in bytes per millisecond.
const MAX_WRITE_BYTES_PER_MS: u64 = 4 << 20;
/// Maximum duration of a count for the next one to leave the command running.
const SHORT_COUNT: Duration = Duration::from_millis(20);
/// Minimum pause after a count, as a multiple of its duration, unless the disk has lost as much as the command may
/// still write.
const SHARE: u32 = 20;
/// Minimum interval between two counts, unless the disk has lost as much as the command may still write.
const COUNT_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of entries and maximum depth of a folder that can be counted.
const MAX_ENTRIES: u64 = 1_000_000;
const MAX_DEPTH: usize = 128;
/// Loss of free space, caused by any process, that is allowed while an uncountable folder is cleaned up, in bytes.
const CLEANUP_ALLOWANCE_BYTES: u64 = 64 << 20;
/// Maximum number of folders that are remembered as full.
const MAX_FULL_FOLDERS: usize = 1024;

/// Waits until the folder exceeds its limit or the disk is almost full. A folder that is already over the limit may be
/// cleaned up but not grow; for an uncountable folder, the disk's free space decides that.
pub async fn disk(folder: PathBuf, limit: u64) -> Killed {
    ResourceMonitor::begin(folder, limit, true, &FullFolders::default()).await.run(NoHold).await
}

/// Pauses the writers of a folder while it is counted, so that the count is accurate.
pub(crate) trait WriteHold: Send {
    /// Pauses the writers, or resumes them.
    fn hold(&mut self, still: bool);
}

/// Does nothing.
struct NoHold;

impl WriteHold for NoHold {
    fn hold(&mut self, _: bool) {}
}

/// Folders that exceeded their limits. The next command in such a folder may only clean up.
#[derive(Debug, Default)]
pub(crate) struct FullFolders(Mutex<BTreeSet<PathBuf>>);

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only the jail uses it"))]
impl FullFolders {
    /// Returns whether a folder exceeded a limit and still does.
    pub(crate) async fn is_still_full(&self, folder: &Path, limit: u64) -> bool {
        if !self.with(|folders| folders.contains(folder)) {
            return false;
        }
        let path = folder.to_owned();
        let size = tokio::task::spawn_blocking(move || size(&path)).await.ok().flatten();
        let still = size.is_none_or(|size| size.bytes > limit);
        if !still {
            self.with(|folders| folders.remove(folder));
        }
        still
    }

    fn note(&self, folder: &Path) {
        self.with(|folders| {
            folders.insert(folder.to_owned());
            if folders.len() > MAX_FULL_FOLDERS {
                folders.pop_first();
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Disk budget of a command.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug, PartialEq))]
enum WriteAllowance {
    /// Maximum size of the folder, in bytes.
    Bytes(u64),
    /// The command may only clean up, and the disk must keep at least this many bytes free.
    CleanUp(u64),
}

/// Monitors one folder while a command is running.
pub(crate) struct ResourceMonitor<'a> {
    folder: PathBuf,
    limit: u64,
    cleaning: bool,
    full: &'a FullFolders,
    judged: Result<WriteAllowance, Killed>,
    last: FolderCount,
    due: Instant,
}

impl<'a> ResourceMonitor<'a> {
    /// Counts the folder before the command starts. The disk space lost since then is an upper bound for the command's
    /// writes. An uncountable folder is accepted only for a command that cleans up.
    pub(crate) async fn begin(folder: PathBuf, limit: u64, cleaning: bool, full: &'a FullFolders) -> Self {
        let last = FolderCount::measure(&folder).await;
        let judged = judge(None, last.bytes(), last.room.bytes, limit, cleaning);
        let mut this = Self { folder, limit, cleaning, full, judged, last, due: Instant::now() };
        this.note();
        this
    }

    /// Runs until the command has to be killed. Returns the reason.
    pub(crate) async fn run(mut self, mut hold: impl WriteHold) -> Killed {
        loop {
            let allowed = match self.judged {
                Ok(allowed) => allowed,
                Err(why) => return why,
            };
            let left = self.last.left(allowed);
            tokio::time::sleep(pause(left.bytes)).await;
            let room = free_space(&self.folder).await;
            if room.is_scarce() {
                return Killed::HostDisk;
            }
            if Instant::now() < self.due && self.last.lost(&room).within(&left) {
                continue;
            }
            // During a short count, only little can be written.
            let long = self.last.took > SHORT_COUNT;
            if long {
                hold.hold(true);
            }
            self.last = FolderCount::measure(&self.folder).await;
            self.judged =
                judge(Some(allowed), self.last.bytes(), self.last.room.bytes, self.limit, self.cleaning);
            self.note();
            if long && self.judged.is_ok() {
                hold.hold(false);
            }
        }
    }

    fn note(&mut self) {
        self.due = Instant::now() + COUNT_INTERVAL.max(self.last.took * SHARE);
        if self.last.bytes().is_none_or(|used| used > self.limit) {
            self.full.note(&self.folder);
        }
    }
}

/// Result of a count.
struct FolderCount {
    /// Size and number of entries; `None` if the folder cannot be counted.
    size: Option<Size>,
    /// Free space of the folder's disk before the count.
    room: FreeSpace,
    took: Duration,
}

impl FolderCount {
    async fn measure(folder: &Path) -> Self {
        let folder = folder.to_owned();
        let count = move || {
            let (begin, room) = (Instant::now(), room(&folder));
            Self { size: size(&folder), room, took: begin.elapsed() }
        };
        let nothing = || Self { size: None, room: FreeSpace { bytes: 0, files: None }, took: Duration::ZERO };
        tokio::task::spawn_blocking(count).await.unwrap_or_else(|_| nothing())
    }

    fn bytes(&self) -> Option<u64> {
        self.size.map(|size| size.bytes)
    }

    /// Returns how much the disk may lose before the next count.
    fn left(&self, allowed: WriteAllowance) -> Size {
        let used = self.size.unwrap_or(Size { bytes: 0, entries: 0 });
        let bytes = match allowed {
            WriteAllowance::Bytes(most) => most.saturating_sub(used.bytes),
            WriteAllowance::CleanUp(least) => self.room.bytes.saturating_sub(least),
        };
        Size { bytes: bytes.max(MIN_LOSS_BYTES), entries: MAX_ENTRIES.saturating_sub(used.entries) }
    }

    /// Returns the disk space that any process has taken since the count.
    fn lost(&self, now: &FreeSpace) -> Size {
        let files = self.room.files.zip(now.files).map_or(0, |(then, now)| then.saturating_sub(now));
        Size { bytes: self.room.bytes.saturating_sub(now.bytes), entries: files }
    }
}

/// Disk usage of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    bytes: u64,
    entries: u64,
}

impl Size {
    fn within(&self, most: &Self) -> bool {
        self.bytes <= most.bytes && self.entries <= most.entries
    }
}

/// Returns the time until the next check of a command that may write `left` more bytes.
fn pause(left: u64) -> Duration {
    Duration::from_millis(left / MAX_WRITE_BYTES_PER_MS).clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL)
}

async fn free_space(folder: &Path) -> FreeSpace {
    let path = folder.to_owned();
    let looked = tokio::task::spawn_blocking(move || room(&path)).await;
    looked.unwrap_or(FreeSpace { bytes: u64::MAX, files: None })
}

/// Evaluates a count. Returns the command's budget, or the reason to kill it.
fn judge(
    allowed: Option<WriteAllowance>,
    used: Option<u64>,
    free: u64,
    limit: u64,
    cleaning: bool,
) -> Result<WriteAllowance, Killed> {
    match (allowed, used) {
        (Some(WriteAllowance::Bytes(most)), Some(used)) if used > most => Err(Killed::Disk(limit)),
        (Some(WriteAllowance::Bytes(most)), Some(_)) => Ok(WriteAllowance::Bytes(most)),
        (None | Some(WriteAllowance::CleanUp(_)), Some(used)) => Ok(WriteAllowance::Bytes(limit.max(used))),
        (None, None) if cleaning => Ok(WriteAllowance::CleanUp(free.saturating_sub(CLEANUP_ALLOWANCE_BYTES))),
        (Some(WriteAllowance::CleanUp(least)), None) if free >= least => Ok(WriteAllowance::CleanUp(least)),
        (_, None) => Err(Killed::Uncounted),
    }
}

/// Free space of a file system.
struct FreeSpace {
    /// Free bytes.
    bytes: u64,
    /// Free inodes; `None` if the file system creates them on demand.
    files: Option<u64>,
}

impl FreeSpace {
    fn is_scarce(&self) -> bool {
        self.bytes < MIN_FREE_BYTES || self.files.is_some_and(|files| files < MIN_FREE_INODES)
    }
}

/// Reads the free space of a file system. If that fails, the space counts as unlimited.
fn room(path: &Path) -> FreeSpace {
    match rustix::fs::statvfs(path) {
        Ok(stat) => FreeSpace {
            bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
            files: (stat.f_files > 0).then_some(stat.f_favail),
        },
        Err(_) => FreeSpace { bytes: u64::MAX, files: None },
    }
}

/// Returns whether a file system is almost full, which may affect the whole machine.
pub(crate) fn almost_full(path: &Path) -> bool {
    almost_full_with(path, 0)
}

/// Like [`almost_full`], but as if `more` additional bytes were used.
pub(crate) fn almost_full_with(path: &Path, more: u64) -> bool {
    let FreeSpace { bytes, files } = room(path);
    FreeSpace { bytes: bytes.saturating_sub(more), files }.is_scarce()
}

/// Returns the disk usage of a folder, in bytes; `None` if it cannot be counted.
pub(crate) fn bytes(folder: &Path) -> Option<u64> {
    size(folder).map(|size| size.bytes)
}

/// Returns the disk usage of a folder; `None` if it cannot be counted because it has too many entries, is too deep, or
/// contains something unreadable.
fn size(folder: &Path) -> Option<Size> {
    let count = || -> io::Result<Option<Size>> {
        let root = Dir::open_ambient_dir(folder, ambient_authority())?;
        let (mut bytes, mut entries) = (0_u64, 0_u64);
        let mut open: Vec<ReadDir> = vec![root.entries()?];
        while let Some(level) = open.last_mut() {
            let Some(entry) = level.next() else {
                open.pop();
                continue;
            };
            let Some(entry) = existing(entry)? else { continue };
            let Some(meta) = existing(entry.metadata())? else { continue };
            bytes = bytes.saturating_add(meta.blocks().saturating_mul(512));
            entries += 1;
            if entries > MAX_ENTRIES || open.len() > MAX_DEPTH {
                return Ok(None);
            }
            if meta.is_dir() {
                open.extend(existing(entry.open_dir().and_then(|dir| dir.entries()))?);
            }
        }
        Ok(Some(Size { bytes, entries }))
    };
    let nothing = Some(Size { bytes: 0, entries: 0 });
    existing(count()).map_or(None, |counted| counted.unwrap_or(nothing))
}

/// Maps the error for an entry that was concurrently removed or replaced to `None`.
fn existing<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_counted_up_to_a_limit_without_following_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::create_dir(path.join("a")).unwrap();
        std::fs::write(path.join("a/b"), vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink("/usr", path.join("link")).unwrap();
        std::fs::File::create(path.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        let used = size(path).unwrap().bytes;
        assert!((1 << 20..1 << 21).contains(&used), "{used}");
        let deep: PathBuf = std::iter::repeat_n("d", MAX_DEPTH + 2).collect();
        std::fs::create_dir_all(path.join(deep)).unwrap();
        assert_eq!(size(path), None);
        assert_eq!(size(&path.join("none")), Some(Size { bytes: 0, entries: 0 }));
    }

    /// Skipped for root, which can read everything.
    #[test]
    fn an_unreadable_folder_does_not_count_as_empty() {
        use std::os::unix::fs::PermissionsExt;
        if rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let hidden = folder.path().join("hidden");
        std::fs::create_dir(&hidden).unwrap();
        std::fs::write(hidden.join("a"), vec![1; 1 << 20]).unwrap();
        for mode in [0o000, 0o100, 0o400] {
            std::fs::set_permissions(&hidden, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(size(folder.path()), None, "{mode:o}");
        }
        std::fs::set_permissions(&hidden, PermissionsExt::from_mode(0o700)).unwrap();
        assert!(size(folder.path()).is_some());
    }

    #[test]
    fn a_count_decides_whether_the_command_continues() {
        let check = |allowed, used, free, cleaning, expect: Result<WriteAllowance, Killed>| {
            assert_eq!(judge(allowed, used, free, 100, cleaning), expect);
        };
        let (bytes, clean_up) = (WriteAllowance::Bytes, WriteAllowance::CleanUp);
        check(None, Some(5), 0, false, Ok(bytes(100)));
        check(None, Some(500), 0, false, Ok(bytes(500)));
        check(None, None, 0, false, Err(Killed::Uncounted));
        check(None, None, CLEANUP_ALLOWANCE_BYTES + 7, true, Ok(clean_up(7)));
        check(Some(bytes(100)), Some(101), 0, false, Err(Killed::Disk(100)));
        check(Some(bytes(100)), None, 0, true, Err(Killed::Uncounted));
        check(Some(clean_up(7)), None, 7, true, Ok(clean_up(7)));
        check(Some(clean_up(7)), None, 6, true, Err(Killed::Uncounted));
        check(Some(clean_up(7)), Some(50), 6, true, Ok(bytes(100)));
    }

    #[test]
    fn a_disk_is_full_without_free_bytes_or_inodes() {
        let check = |bytes, files, expect| assert_eq!(FreeSpace { bytes, files }.is_scarce(), expect);
        check(MIN_FREE_BYTES, Some(MIN_FREE_INODES), false);
        check(MIN_FREE_BYTES - 1, Some(MIN_FREE_INODES), true);
        check(MIN_FREE_BYTES, Some(MIN_FREE_INODES - 1), true);
        check(MIN_FREE_BYTES, None, false);
    }
}
