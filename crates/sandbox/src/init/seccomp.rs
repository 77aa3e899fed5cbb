//! Builds the seccomp filter. It is a denylist, because a shell can run any program, and the system calls that programs
//! need are unknown.
//!
//! It denies calls that affect other processes, mounts, namespaces, devices and the machine, as well as the calls with
//! the most kernel vulnerabilities. Most require a capability anyway.

use super::{
    error::{InitError, Trying},
    wire::Net,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, TargetArch, apply_filter, sock_filter,
};
use std::collections::BTreeMap;

/// Call numbers with the conditions under which the rule applies; it always applies if there are none.
type SyscallRules = BTreeMap<i64, Vec<Rule>>;

/// Calls that fail with `EPERM`.
const FORBIDDEN: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_fanotify_init,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
    // Frequent kernel vulnerabilities.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Memory that no limit counts.
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_sysfs,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// `open_tree_attr` and `listns`, which affect mounts and namespaces and are missing in the C library's list.
const FORBIDDEN_NEW: &[i64] = &[467, 470];

/// Flags of `clone` that create namespaces.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Flags and arguments of the calls that are denied conditionally.
const THREAD: u64 = 0x0001_0000; // CLONE_THREAD
const FILES: u64 = 0x0000_0400; // CLONE_FILES
const UNSHARE: u64 = 2; // CLOSE_RANGE_UNSHARE

const PIPE_SIZE: u64 = 1031; // F_SETPIPE_SZ
const DUMPABLE: u64 = 4; // PR_SET_DUMPABLE

/// Requests of `ioctl` that insert characters into a terminal's input.
const TERMINAL_INJECTION: [u64; 2] = [0x5412, 0x541c]; // TIOCSTI, TIOCLINUX

/// Address families that stay within the namespaces. Others, notably `vsock`, reach the host.
const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Options of the filter.
pub(super) struct Filter {
    /// Network access.
    pub(super) net: Net,
    /// Whether a control group counts kernel memory outside of processes.
    pub(super) counted: bool,
    /// Whether commands may use inotify. They may not if they share the daemon's quota.
    pub(super) inotify: bool,
}

/// Installs the filter for this process and its children. The filter cannot be removed.
pub(super) fn install(filter: &Filter) -> Result<(), InitError> {
    for program in [foreign(filter.counted), forbidden(filter).trying("cannot build the seccomp filter")?] {
        apply_filter(&program).trying("cannot install the seccomp filter")?;
    }
    Ok(())
}

/// System calls for computation, and for reading and writing open files.
const THINKING: &[i64] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_fcntl,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    // The other filter reports this call as missing.
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_uname,
];

/// Installs a filter that denies everything except [`THINKING`], for this process and its threads.
pub(super) fn install_for_thinking() -> Result<(), InitError> {
    for program in [foreign(true), thinking().trying("cannot build the seccomp filter")?] {
        apply_filter(&program).trying("cannot install the seccomp filter")?;
    }
    Ok(())
}

fn thinking() -> Result<BpfProgram, seccompiler::BackendError> {
    const NAME: u64 = 15; // PR_SET_NAME
    let mut rules: SyscallRules = THINKING.iter().map(|call| (*call, Vec::new())).collect();
    // Allows new threads but no processes, the process's own limits, which can only be lowered, and names of threads.
    rules.insert(libc::SYS_clone, vec![when(&[(0, Len::Qword, Op::MaskedEq(THREAD), THREAD)])?]);
    rules.insert(libc::SYS_prlimit64, vec![when(&[(0, Len::Dword, Op::Eq, 0)])?]);
    rules.insert(libc::SYS_prctl, vec![when(&[(0, Len::Dword, Op::Eq, NAME)])?]);
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let here = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, here)?.try_into()
}

fn forbidden(filter: &Filter) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: SyscallRules =
        FORBIDDEN.iter().chain(FORBIDDEN_NEW).map(|call| (*call, Vec::new())).collect();
    let mask = |bit: u64| Op::MaskedEq(bit);
    let flags = NAMESPACES.iter().map(|bit| u64::from(bit.cast_unsigned()));
    let mut clones: Vec<Rule> =
        flags.map(|bit| when(&[(0, Len::Qword, mask(bit), bit)])).collect::<Result<_, _>>()?;
    // A thread with its own file table is denied, because the file count inspects only one thread per process.
    clones.push(when(&[(0, Len::Qword, Op::MaskedEq(THREAD | FILES), THREAD)])?);
    rules.insert(libc::SYS_clone, clones);
    rules.insert(libc::SYS_close_range, vec![when(&[(2, Len::Dword, mask(UNSHARE), UNSHARE)])?]);
    // Denies pipes beyond their counted size, and the setting that hides a process from the checks.
    rules.insert(libc::SYS_fcntl, vec![when(&[(1, Len::Dword, Op::Eq, PIPE_SIZE)])?]);
    rules.insert(
        libc::SYS_prctl,
        vec![when(&[(0, Len::Dword, Op::Eq, DUMPABLE), (1, Len::Qword, Op::Eq, 0)])?],
    );
    if !filter.inotify {
        #[cfg(target_arch = "x86_64")]
        rules.insert(libc::SYS_inotify_init, Vec::new());
        rules.insert(libc::SYS_inotify_init1, Vec::new());
    }
    rules.insert(
        libc::SYS_ioctl,
        TERMINAL_INJECTION
            .map(|request| when(&[(1, Len::Dword, Op::Eq, request)]))
            .into_iter()
            .collect::<Result<_, _>>()?,
    );
    // Denies changes of the execution domain, but allows its default and queries.
    rules.insert(
        libc::SYS_personality,
        vec![when(&[(0, Len::Dword, Op::Ne, 0), (0, Len::Dword, Op::Ne, u64::from(u32::MAX))])?],
    );
    let others: Vec<_> =
        FAMILIES.iter().map(|family| (0, Len::Dword, Op::Ne, u64::from(family.unsigned_abs()))).collect();
    let mut sockets = vec![when(&others)?];
    if filter.net != Net::Shared {
        // The only allowed netlink protocol lists interfaces.
        let netlink = u64::from(libc::AF_NETLINK.unsigned_abs());
        sockets.push(when(&[(0, Len::Dword, Op::Eq, netlink), (2, Len::Dword, Op::Ne, 0)])?);
    }
    rules.insert(libc::SYS_socket, sockets);
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let here = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, here)?.try_into()
}

fn when(conditions: &[(u8, Len, Op, u64)]) -> Result<Rule, seccompiler::BackendError> {
    let conditions = conditions.iter().map(|(argument, length, operation, value)| {
        Condition::new(*argument, length.clone(), operation.clone(), *value)
    });
    Rule::new(conditions.collect::<Result<_, _>>()?)
}

/// Returns a hand-written filter with rules that the library cannot express. It reports three kinds of calls as
/// missing: calls of the x32 ABI, whose numbers would bypass the other filter; `clone3`, whose flags no filter can
/// read, so that programs use `clone` instead; and, if its memory is not counted, `memfd_create`, so that programs use
/// `/dev/shm` instead. The other filter denies other architectures.
fn foreign(counted: bool) -> BpfProgram {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const IF_FROM: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const X32: u32 = 0x4000_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or(435);
    // If `memfd_create` is allowed, this is the number of `clone3` again.
    let memfd = if counted { clone3 } else { u32::try_from(libc::SYS_memfd_create).unwrap_or(clone3) };
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD, 0, 0, 0), // the number is first in seccomp_data
        step(IF_FROM, 3, 0, X32),
        step(IF_EQUAL, 2, 0, clone3),
        step(IF_EQUAL, 1, 0, memfd),
        step(RETURN, 0, 0, ALLOW),
        step(RETURN, 0, 0, ERRNO | libc::ENOSYS.cast_unsigned()),
    ]
}
