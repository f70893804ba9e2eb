/** The system calls that a sandbox may make, grouped by purpose. Pure data. */

/**
 * Denied on purpose, as not listed: bpf, perf_event_open, userfaultfd, the keyrings, the mount family and
 * fsopen…, unshare, setns, pivot_root, mknod of devices (the capability is missing), kernel modules, kexec, reboot, swap,
 * open_by_handle_at, clocks, quotas, acct, syslog, I/O ports, io_uring, NUMA policies, lookup_dcookie, vmsplice.
 */
export const ALLOWED_CALLS: readonly string[] = Object.values({
  files: `
    access chdir chmod chown chroot close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64
    fchdir fchmod fchmodat fchmodat2 fchown fchownat fdatasync flock fstat fstatfs fsync ftruncate
    getcwd getdents getdents64 lchown link linkat lseek lstat mkdir mkdirat mknod mknodat name_to_handle_at
    newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink
    readlinkat readv rename renameat renameat2 rmdir sendfile splice stat statfs statx symlink symlinkat sync
    sync_file_range syncfs tee truncate umask unlink unlinkat utime utimensat utimes futimesat write writev
    cachestat`,
  attributes: `
    fgetxattr flistxattr fremovexattr fsetxattr getxattr lgetxattr listxattr llistxattr lremovexattr lsetxattr
    removexattr setxattr`,
  watches: `
    inotify_add_watch inotify_init inotify_init1 inotify_rm_watch`,
  memory: `
    brk madvise map_shadow_stack membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect
    mremap mseal msync munlock munlockall munmap process_madvise process_mrelease
    remap_file_pages`,
  processes: `
    arch_prctl capget capset execve execveat exit exit_group fork getcpu getegid geteuid getgid getgroups getpgid
    getpgrp getpid getppid getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid get_robust_list
    get_thread_area ioprio_get ioprio_set kcmp
    pidfd_open pidfd_send_signal prctl prlimit64 process_vm_readv process_vm_writev ptrace rseq sched_getaffinity
    sched_getattr sched_getparam sched_get_priority_max sched_get_priority_min sched_getscheduler
    sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp
    setfsgid setfsuid setgid setgroups setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid
    set_robust_list set_thread_area set_tid_address setuid sysinfo times uname vfork wait4 waitid`,
  signals: `
    alarm getitimer kill pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
    rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo setitimer sigaltstack signalfd signalfd4 tgkill
    tkill`,
  time: `
    clock_getres clock_gettime clock_nanosleep gettimeofday nanosleep time timer_create timer_delete
    timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime`,
  waiting: `
    epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd
    eventfd2 futex futex_requeue futex_wait futex_waitv futex_wake poll ppoll pselect6 select`,
  pipesAndQueues: `
    mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd pipe pipe2
    semctl semget semop semtimedop shmat shmctl shmdt shmget`,
  asynchronousFiles: `
    io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit`,
  network: `
    accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg sendmsg
    sendto setsockopt shutdown socketpair`,
  machine: `
    getrandom`,
}).flatMap((names) => names.trim().split(/\s+/));

/**
 * The commands of `fcntl` that a sandbox may give, on amd64 and arm64 alike. Not F_SETLEASE (1024), F_NOTIFY (1026) and
 * F_SETDELEG (1040): while a process holds a lease on a file, every other open of that file waits, for 45 s each time.
 */
export const FCNTL_COMMANDS: Readonly<Record<string, number>> = {
  F_DUPFD: 0,
  F_GETFD: 1,
  F_SETFD: 2,
  F_GETFL: 3,
  F_SETFL: 4,
  F_GETLK: 5,
  F_SETLK: 6,
  F_SETLKW: 7,
  F_SETOWN: 8,
  F_GETOWN: 9,
  F_SETSIG: 10,
  F_GETSIG: 11,
  F_SETOWN_EX: 15,
  F_GETOWN_EX: 16,
  F_GETOWNER_UIDS: 17,
  F_OFD_GETLK: 36,
  F_OFD_SETLK: 37,
  F_OFD_SETLKW: 38,
  F_GETLEASE: 1025,
  F_DUPFD_QUERY: 1027,
  F_CREATED_QUERY: 1028,
  F_DUPFD_CLOEXEC: 1030,
  F_SETPIPE_SZ: 1031,
  F_GETPIPE_SZ: 1032,
  F_ADD_SEALS: 1033,
  F_GET_SEALS: 1034,
  F_GET_RW_HINT: 1035,
  F_SET_RW_HINT: 1036,
  F_GET_FILE_RW_HINT: 1037,
  F_SET_FILE_RW_HINT: 1038,
};
