//! Resource limits of a command, and how it ends when it exceeds them.

use crate::house::{confined, gone};
use pudu_base::Killed;
use pudu_sandbox::{CommandLimits, Options};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn limits(memory: u64, processes: u64, disk: u64) -> Options {
    Options { limits: CommandLimits { memory, processes, disk }, ..Options::default() }
}

/// Whatever a command did, the next one works and the machine is as fast as before.
macro_rules! and_the_next_one_works {
    ($house:expr) => {
        let begin = Instant::now();
        assert_eq!($house.says("echo well").await, "well");
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    };
}

#[tokio::test]
async fn a_fork_bomb_stays_in_its_box_and_is_cleared_away() {
    let Some(house) = confined(limits(512 * MIB, 64, 64 * MIB)).await else { return };
    let bomb = "bomb() { bomb | bomb & }; bomb; sleep 98765601";
    let done = house.sh_for(bomb, Duration::from_secs(2)).await;
    assert_eq!(done.killed, Some(Killed::Late), "{}", done.stdout);
    gone("98765601").await;
    and_the_next_one_works!(house);
    let many = "for i in $(seq 200); do sleep 60 & done 2> /dev/null; jobs -p | wc -l";
    let count: u64 = house.sh(many).await.stdout.trim().parse().unwrap_or(0);
    assert!(count < 64, "{count}");
}

#[tokio::test]
async fn a_hog_of_memory_is_stopped_in_one_process_and_in_many() {
    let Some(house) = confined(limits(192 * MIB, 64, 64 * MIB)).await else { return };
    // One process: the kernel refuses more memory.
    let one = "head -c 400M /dev/zero | tail -c 300M > /dev/null; echo ${PIPESTATUS[1]}";
    let done = house.sh(one).await;
    assert_ne!(done.stdout, "0\n", "{done:?}");
    // Many processes below the limit: their sum is counted.
    let many = "for i in 1 2 3 4 5 6; do (x=$(head -c 60M /dev/zero | tr '\\0' x); sleep 30) & done; wait";
    let done = house.sh_for(many, Duration::from_secs(60)).await;
    assert_eq!(done.killed, Some(Killed::Memory(192 * MIB)), "{done:?}");
    and_the_next_one_works!(house);
    // Memory that belongs to a file system instead of a process.
    let shared = "head -c 100M /dev/zero > /dev/shm/x; stat -c %s /dev/shm/x";
    let size: u64 = house.sh(shared).await.stdout.trim().parse().unwrap();
    assert!(size <= 64 * MIB, "{size}");
}

#[tokio::test]
async fn a_thread_that_fills_its_folder_is_stopped_and_can_clean_up() {
    let Some(house) = confined(limits(512 * MIB, 64, 48 * MIB)).await else { return };
    let one = house.sh("head -c 100M /dev/zero > one").await;
    // The command may be killed as soon as its file fills the folder, so it cannot report the size.
    let size = std::fs::metadata(house.on_host("workspace/one")).unwrap().len();
    assert!((47 * MIB..=48 * MIB).contains(&size), "{size}: {one:?}");
    house.says("rm one").await;
    let many = "for i in $(seq 60); do head -c 4M /dev/urandom > f$i; sleep 0.1; done; echo all";
    let done = house.sh(many).await;
    assert_eq!((done.killed, done.stdout.as_str()), (Some(Killed::Disk(48 * MIB)), ""), "{done:?}");
    assert_eq!(house.says("rm f*; sleep 1; echo clean").await, "clean");
    and_the_next_one_works!(house);
}

#[tokio::test]
async fn a_folder_that_cannot_be_counted_stops_commands_and_can_be_cleaned_up() {
    let Some(house) = confined(limits(512 * MIB, 64, 48 * MIB)).await else { return };
    let deep = "for i in $(seq 140); do mkdir d; cd d; done; sleep 30; echo went on";
    let done = house.sh(deep).await;
    assert_eq!((done.killed, done.stdout.as_str()), (Some(Killed::Uncounted), ""), "{done:?}");
    let done = house.sh("head -c 1M /dev/zero > /mnt/user-data/workspace/more").await;
    assert!(done.code != Some(0) && done.stderr.contains("could only remove files"), "{done:?}");
    assert_eq!(house.says("stat -c %s more; sleep 0.5; rm -r d more; sleep 1; echo clean").await, "0\nclean");
    assert_eq!(house.says("echo room > again; cat again").await, "room");
}

/// Root can read everything; an ordinary user's files can be hidden from the same user.
#[tokio::test]
async fn files_that_are_hidden_from_the_daemon_do_not_count_as_nothing() {
    let Some(house) = confined(limits(512 * MIB, 64, 48 * MIB)).await else { return };
    if house.local.owner().is_some() {
        return;
    }
    let hide = "mkdir h; head -c 4M /dev/zero > h/a; chmod 000 h; sleep 30; echo went on";
    let done = house.sh(hide).await;
    assert_eq!((done.killed, done.stdout.as_str()), (Some(Killed::Uncounted), ""), "{done:?}");
    assert_eq!(house.says("chmod 700 h; rm -r h; echo clean").await, "clean");
    assert_eq!(house.says("echo room > again; cat again").await, "room");
}

/// A command that ends before the second count.
#[tokio::test]
async fn many_short_commands_fill_no_more_than_a_long_one() {
    let Some(house) = confined(limits(512 * MIB, 64, 20 * MIB)).await else { return };
    for number in 0..8 {
        house.sh(&format!("head -c 16M /dev/zero > f{number}")).await;
    }
    let kib: u64 = house.says("du -sk . | cut -f 1").await.parse().unwrap();
    // The writes before the first count, and those of the command whose count exceeded the limit.
    assert!(kib <= 50 * 1024, "{kib} KiB");
    assert_eq!(house.says("rm f*; echo clean").await, "clean");
}

#[tokio::test]
async fn scratch_files_are_limited_too_and_gone_afterwards() {
    let Some(house) = confined(Options::default()).await else { return };
    let done = house
        .sh("head -c 600M /dev/zero > /tmp/x; stat -c %s /tmp/x; for i in $(seq 5); do echo > /x$i; done")
        .await;
    let size: u64 = done.stdout.trim().parse().unwrap();
    assert!(size <= 512 * MIB && !done.stderr.is_empty(), "{done:?}");
    and_the_next_one_works!(house);
}

#[tokio::test]
async fn limits_can_be_seen_and_not_raised() {
    let Some(house) = confined(limits(100 * MIB, 50, 10 * MIB)).await else { return };
    let script = "ulimit -c; ulimit -u; ulimit -d; ulimit -f; ulimit -u 51 2>/dev/null || echo refused";
    let said = house.says(script).await;
    assert_eq!(said, format!("0\n50\n{}\n{}\nrefused", 100 * 1024, 10 * 1024));
    let nice: i32 = house.says("nice").await.parse().unwrap();
    assert!(nice >= 5, "{nice}");
    assert_eq!(house.says("cat /proc/self/oom_score_adj").await, "1000");
    assert!(house.sandbox.read("/mnt/user-data/workspace/none", 1).await.is_err());
}
