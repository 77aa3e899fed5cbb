//! Sandboxes on this machine, for the agent's commands and files.
//!
//! [`LocalSandboxes`] is the provider for this machine. Each thread has its own folder. File tools access it only
//! through a directory handle that the kernel confines (`openat2` with `RESOLVE_BENEATH` if available), so that no path
//! or symlink leads outside. Commands see it as `/mnt/user-data` in a separate file system, in their own namespaces,
//! without privileges, and without a network unless the operator allows it ([`Jail`]). If the kernel does not offer
//! namespaces, there is no shell unless the operator allows the machine's.
//!
//! A program that embeds this crate calls [`enter`] first in its `main`: sandboxes are that program, started again.
//! Deliberately absent: filtering commands by their text, which protects no user.

mod capture;
mod changes;
mod discard;
mod egress;
mod failure;
mod files;
mod folders;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
#[cfg(target_os = "linux")]
mod group;
#[cfg(target_os = "linux")]
mod init;
#[cfg_attr(target_os = "linux", path = "jail.rs")]
#[cfg_attr(not(target_os = "linux"), path = "no_jail.rs")]
mod jail;
mod jail_spec;
mod limits;
mod local;
mod monitor;
mod mounts;
mod names;
mod output_edit;
mod prove;
mod results;
mod rights;
mod share;
mod shell;

pub use capture::{Capture, END};
pub use changes::{
    ChangeRecords, ChangeStatus, ChangeSummary, FileChange, MAX_COMPARED_BYTES, MAX_DIFF_BYTES,
    MAX_LISTED_FILES, MAX_SCANNED_FILES, NoDiff, WorkspaceChanges,
};
pub use egress::Egress;
pub use folders::{Folders, ThreadFiles};
#[cfg(target_os = "linux")]
pub use init::{enter, withdraw};
pub use jail::Jail;
#[cfg(not(target_os = "linux"))]
pub use jail::{enter, withdraw};
pub use jail_spec::Unconfined;
pub use limits::CommandLimits;
pub use local::{LocalSandboxes, Options};
pub use monitor::disk;
pub use mounts::{ACP, Mount, ROOT, SKILLS, THREAD_FOLDERS, UPLOADS};
pub use output_edit::{OutputEdit, OutputEdited};
pub use prove::{Proof, prove, prove_in};
pub use rights::can_change_user;
pub use share::Upload;
pub use shell::DRAIN;
