/* An allow list of the calls that Node, V8, libuv, OpenSSL and the C library make when they read files, run threads and
 * carry connections. The kernel answers any other with ENOSYS, as an older kernel would, so that libraries fall back to
 * older calls. Not in the list, among others: ptrace, mount, unshare, setns, bpf, keyctl, modules, kexec, perf, io_uring,
 * fork, execve, and all calls that make or change a file. */

#define _GNU_SOURCE
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the filter knows x86_64 and aarch64"
#endif

/* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME. */
#define NEW_NAMESPACES 0x7e020080
/* O_TMPFILE without the O_DIRECTORY that is part of it. */
#define MAKES_FILE (O_CREAT | 020000000)
#define TCP_ULP 31
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

enum { MOST = 1024 };

static struct sock_filter code[MOST];
static unsigned short length;

static void put(uint16_t what, uint32_t value, uint8_t yes, uint8_t no) {
  /* A filter that would not fit is left empty, and the kernel rejects an empty filter. */
  if (length < MOST) code[length++] = (struct sock_filter)BPF_JUMP(what, value, yes, no);
}

static void load(size_t offset) { put(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0); }
static void answer(uint32_t action) { put(BPF_RET | BPF_K, action, 0, 0); }
static void refuse(int error) { answer(SECCOMP_RET_ERRNO | (uint32_t)error); }
static void allow(void) { answer(SECCOMP_RET_ALLOW); }

/* Arguments are 64 bits wide; where the kernel reads an int, only the low half is compared. */
static void low(int argument) { load(offsetof(struct seccomp_data, args) + 8 * (size_t)argument); }
static void high(int argument) { load(offsetof(struct seccomp_data, args) + 8 * (size_t)argument + 4); }

static void allow_if(uint32_t value) {
  put(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
  allow();
}

static void refuse_if(uint32_t value, int error) {
  put(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
  refuse(error);
}

static void refuse_if_any(uint32_t bits, int error) {
  put(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
  refuse(error);
}

static void refuse_unless(uint32_t value, int error) {
  put(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
  refuse(error);
}

/* Rules for one call. Expects its number to be loaded and loads it again for the rules that follow. */
static unsigned short begin_call(long number) {
  put(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 0);
  return (unsigned short)(length - 1);
}

/* Completes begin_call: any other call jumps here. The rules in between must all have returned a verdict. */
static void end_call(unsigned short at) { code[at].jf = (uint8_t)(length - 1 - at); }

/* The most frequent calls first. */
static const long ALLOWED[] = {
  SYS_read, SYS_write, SYS_epoll_pwait, SYS_futex, SYS_epoll_ctl, SYS_writev, SYS_close, SYS_accept4, SYS_connect,
  SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown, SYS_getsockname,
  SYS_getpeername, SYS_getsockopt, SYS_bind, SYS_listen, SYS_accept,
  SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mremap, SYS_brk, SYS_membarrier, SYS_mincore,
  SYS_readv, SYS_pread64, SYS_preadv, SYS_lseek, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs,
  SYS_faccessat, SYS_readlinkat, SYS_getdents64, SYS_getcwd, SYS_fadvise64, SYS_fsync, SYS_fdatasync,
  SYS_dup, SYS_dup3, SYS_fcntl, SYS_pipe2, SYS_eventfd2, SYS_epoll_create1, SYS_ppoll, SYS_pselect6,
  SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_times,
  SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigtimedwait, SYS_sigaltstack, SYS_restart_syscall,
  SYS_gettid, SYS_getpid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid,
  SYS_getgroups, SYS_capget, SYS_umask,
  SYS_set_robust_list, SYS_get_robust_list, SYS_set_tid_address, SYS_exit, SYS_exit_group,
  SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_get_priority_max,
  SYS_sched_get_priority_min, SYS_getpriority, SYS_getcpu,
  SYS_getrandom, SYS_getrusage, SYS_getrlimit, SYS_setrlimit, SYS_sysinfo, SYS_uname,
#ifdef SYS_rseq
  SYS_rseq,
#endif
#ifdef SYS_faccessat2
  SYS_faccessat2,
#endif
#ifdef SYS_epoll_pwait2
  SYS_epoll_pwait2,
#endif
#ifdef SYS_close_range
  SYS_close_range,
#endif
#ifdef __x86_64__
  SYS_epoll_wait, SYS_poll, SYS_select, SYS_access, SYS_stat, SYS_lstat, SYS_readlink, SYS_dup2, SYS_pipe,
  SYS_epoll_create, SYS_eventfd, SYS_arch_prctl, SYS_time,
#endif
};

/* ioctl requests on sockets and pipes, and those by which libc and Node test for a terminal. */
static const uint32_t REQUESTS[] = { FIONBIO, FIONREAD, FIOCLEX, FIONCLEX, TCGETS, TIOCGWINSZ };
static const uint32_t PRCTLS[] = { PR_SET_NAME, PR_GET_NAME, PR_SET_VMA };

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* IPv4, IPv6, and the kernel's table of addresses. */
static void sockets(void) {
  unsigned short at = begin_call(SYS_socket);
  low(0);
  allow_if(AF_INET);
  allow_if(AF_INET6);
  refuse_unless(AF_NETLINK, EAFNOSUPPORT);
  low(2);
  allow_if(NETLINK_ROUTE);
  refuse(EPROTONOSUPPORT);
  end_call(at);

  /* Refuses options that attach packet filters (SO_ATTACH_*) or a protocol on top of TCP (TCP_ULP). */
  at = begin_call(SYS_setsockopt);
  low(1);
  put(BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 0, 10);
  low(2);
  refuse_if(SO_ATTACH_FILTER, EPERM);
  refuse_if(SO_ATTACH_BPF, EPERM);
  refuse_if(SO_ATTACH_REUSEPORT_CBPF, EPERM);
  refuse_if(SO_ATTACH_REUSEPORT_EBPF, EPERM);
  allow();
  put(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 3);
  low(2);
  refuse_if(TCP_ULP, EPERM);
  allow();
  end_call(at);
}

/* Allows opening files for reading only. `flags` is the index of the argument with the open flags. */
static void open_files(long number, int flags) {
  unsigned short at = begin_call(number);
  low(flags);
  refuse_if_any(MAKES_FILE, EACCES);
  allow();
  end_call(at);
}

/* Allows threads, but no processes or namespaces. clone3 gets ENOSYS, because a filter cannot see its flags. */
static void threads(void) {
  unsigned short at = begin_call(SYS_clone);
  low(0);
  refuse_if_any(NEW_NAMESPACES, EPERM);
  put(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
  refuse(EPERM);
  allow();
  end_call(at);
}

/* Signals (for abort) and limits are allowed for the process itself only. */
static void itself(void) {
  const uint32_t own = (uint32_t)getpid();
  const long signals[] = { SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo };
  for (size_t i = 0; i < COUNT(signals); i++) {
    unsigned short at = begin_call(signals[i]);
    low(0);
    allow_if(own);
    refuse(EPERM);
    end_call(at);
  }
  unsigned short at = begin_call(SYS_prlimit64);
  low(0);
  allow_if(0);
  allow_if(own);
  refuse(EPERM);
  end_call(at);
}

static void one_of(long number, int argument, const uint32_t *values, size_t count, int error) {
  unsigned short at = begin_call(number);
  low(argument);
  for (size_t i = 0; i < count; i++) allow_if(values[i]);
  refuse(error);
  end_call(at);
}

static void programs(int program, const char *name) {
  unsigned short at = begin_call(SYS_execve);
  refuse(EPERM);
  end_call(at);
  at = begin_call(SYS_execveat);
  low(0);
  refuse_unless((uint32_t)program, EPERM);
  low(1);
  refuse_unless((uint32_t)(uintptr_t)name, EPERM);
  high(1);
  refuse_unless((uint32_t)((uint64_t)(uintptr_t)name >> 32), EPERM);
  low(4);
  refuse_unless(AT_EMPTY_PATH, EPERM);
  allow();
  end_call(at);
}

int filter_calls(int program, const char *name) {
  load(offsetof(struct seccomp_data, arch));
  put(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
  answer(SECCOMP_RET_KILL_PROCESS);
  load(offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < COUNT(ALLOWED); i++) allow_if((uint32_t)ALLOWED[i]);
  sockets();
  open_files(SYS_openat, 2);
#ifdef SYS_open
  open_files(SYS_open, 1);
#endif
  threads();
  itself();
  one_of(SYS_ioctl, 1, REQUESTS, COUNT(REQUESTS), ENOTTY);
  one_of(SYS_prctl, 0, PRCTLS, COUNT(PRCTLS), EPERM);
  programs(program, name);
  refuse(ENOSYS);
  if (length == MOST) return errno = E2BIG, -1;
  const struct sock_fprog whole = { .len = length, .filter = code };
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0, 0);
}
