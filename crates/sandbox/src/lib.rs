//! Sandboxes on this machine for the agent's commands and files.
//!
//! [`LocalSandboxes`] is the provider for this machine. Each thread has its own folder. File tools access it only
//! through a directory handle that the kernel confines (`openat2` with `RESOLVE_BENEATH` if available), so that no path
//! or symlink leads outside. Commands see it as `/mnt/user-data` in a file system of their own. They run in their own
//! namespaces without privileges, and without network access unless the operator allows it ([`Jail`]). Without
//! namespaces in the kernel, there is no shell unless the operator allows the host's shell.
//!
//! A program that embeds this crate must call [`enter`] first in its `main`, because a sandbox runs the same program
//! again. Deliberately absent: filtering commands by their text, which does not protect users.

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
