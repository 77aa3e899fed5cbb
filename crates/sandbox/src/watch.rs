//! Watches the disk while a command runs: no quota that every file system has would do it for us.

use cap_std::{
    ambient_authority,
    fs::{Dir, MetadataExt, ReadDir},
};
use pudu_base::Killed;
use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// So much of the machine's disk is nobody's to fill, in bytes.
const FLOOR: u64 = 256 << 20;
/// The free space is looked at this often.
const LOOK: Duration = Duration::from_millis(100);
/// Counting a folder takes this share of the time at most.
const SHARE: u32 = 20;
/// The folder is not counted more often than this.
const COUNT: Duration = Duration::from_millis(500);
/// More entries than this, or folders deeper than that, are as bad as too many bytes.
const ENTRIES: u64 = 1_000_000;
const DEPTH: usize = 128;

/// Returns when the folder is larger than it may be, or the disk almost full. A folder that is too large already
/// may stay so, that it can be cleaned up, but not grow.
pub async fn disk(folder: PathBuf, limit: u64) -> Killed {
    let mut allowed = None;
    let mut due = Instant::now() + LOOK;
    loop {
        tokio::time::sleep(LOOK).await;
        let (path, count) = (folder.clone(), Instant::now() >= due);
        let look = move || {
            let begin = Instant::now();
            let used = count.then(|| size(&path));
            (almost_full(&path), used, begin.elapsed())
        };
        let Ok((full, used, took)) = tokio::task::spawn_blocking(look).await else { continue };
        if full {
            return Killed::HostDisk;
        }
        if let Some(used) = used {
            due = Instant::now() + COUNT.max(took * SHARE);
            let allowed = *allowed.get_or_insert(limit.max(used));
            if used > allowed {
                return Killed::Disk(limit);
            }
        }
    }
}

/// Whether a file system has so little room that the machine may suffer. One that does not tell has room.
pub(crate) fn almost_full(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) < FLOOR)
}

/// What a folder takes of the disk, in bytes; the most there can be where it cannot be counted.
fn size(folder: &Path) -> u64 {
    let count = || -> io::Result<u64> {
        let root = Dir::open_ambient_dir(folder, ambient_authority())?;
        let (mut bytes, mut entries) = (0_u64, 0_u64);
        let mut open: Vec<ReadDir> = vec![root.entries()?];
        while let Some(level) = open.last_mut() {
            let Some(entry) = level.next() else {
                open.pop();
                continue;
            };
            // What is removed while it is counted does not count.
            let Ok(entry) = entry else { continue };
            let Ok(meta) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(meta.blocks().saturating_mul(512));
            entries += 1;
            if entries > ENTRIES || open.len() > DEPTH {
                return Ok(u64::MAX);
            }
            if meta.is_dir()
                && let Ok(dir) = entry.open_dir()
            {
                open.extend(dir.entries());
            }
        }
        Ok(bytes)
    };
    count().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_counted_without_following_links_and_not_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::create_dir(path.join("a")).unwrap();
        std::fs::write(path.join("a/b"), vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink("/usr", path.join("link")).unwrap();
        std::fs::File::create(path.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        let used = size(path);
        assert!((1 << 20..1 << 21).contains(&used), "{used}");
        let deep: PathBuf = std::iter::repeat_n("d", DEPTH + 2).collect();
        std::fs::create_dir_all(path.join(deep)).unwrap();
        assert_eq!(size(path), u64::MAX);
        assert_eq!(size(&path.join("none")), 0);
    }
}
