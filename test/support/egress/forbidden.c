/* The things that a program started by svc-egress may not do: tries each once and prints its name with "done" or the error.
 * Started by root without svc-egress, it shows that the attempts are real. Its argument is the id of a process of another
 * user. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void told(const char *what, long result) {
  if (result >= 0) printf("%s done\n", what);
  else printf("%s %s\n", what, strerrorname_np(errno));
}

/* Makes an attempt that must do no harm: the kernel refuses its arguments, but only after it has let the call in. */
static void reaches_kernel(const char *what, long number, long a, long b, long c) {
  told(what, syscall(number, a, b, c, 0, 0));
}

static long child(void) {
  pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid(pid, NULL, 0);
  return pid;
}

static long file(const char *path, int flags) {
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
  if (fd >= 0) unlink(path);
  return fd;
}

static long packet_program(void) {
  struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffff);
  struct sock_fprog program = { 1, &all };
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  return fd < 0 ? fd : setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static long program_of(const char *path) {
  char *const nothing[] = { NULL };
  return syscall(SYS_execve, path, nothing, nothing);
}

int main(int count, char **arguments) {
  pid_t other = count > 1 ? (pid_t)atoi(arguments[1]) : 1;
  struct rlimit limit;
  setbuf(stdout, NULL);
  told("child", child());
  told("program", program_of("/nonexistent"));
  told("file", file("/tmp/svc-forbidden", O_CREAT | O_WRONLY));
  told("nameless file", file("/tmp", O_TMPFILE | O_RDWR));
  told("directory", mkdir("/tmp/svc-forbidden.d", 0700));
  told("unix socket", socket(AF_UNIX, SOCK_STREAM, 0));
  told("packet socket", socket(AF_PACKET, SOCK_RAW, 0));
  told("netfilter socket", socket(AF_NETLINK, SOCK_RAW, 12));
  told("raw socket", socket(AF_INET, SOCK_RAW, 255));
  told("packet program", packet_program());
  told("signal", kill(other, 0));
  told("limits", prlimit(other, RLIMIT_NOFILE, NULL, &limit));
  told("user", setresuid(0, 0, 0));
  told("root directory", chroot("/"));
  reaches_kernel("ptrace", SYS_ptrace, -1, -1, 0);
  reaches_kernel("memory of another", SYS_process_vm_readv, -1, 0, 0);
  reaches_kernel("descriptor of another", SYS_pidfd_open, -1, 0, 0);
  reaches_kernel("mount", SYS_mount, (long)"none", (long)"/nonexistent", (long)"tmpfs");
  reaches_kernel("namespace", SYS_unshare, CLONE_NEWUTS, 0, 0);
  reaches_kernel("namespace of another", SYS_setns, -1, 0, 0);
  reaches_kernel("bpf", SYS_bpf, -1, 0, 0);
  reaches_kernel("keys", SYS_keyctl, 0, 0, 0);
  reaches_kernel("module", SYS_init_module, 0, 0, 0);
  reaches_kernel("kexec", SYS_kexec_load, 0, 0, -1);
  reaches_kernel("perf", SYS_perf_event_open, 0, 0, 0);
  reaches_kernel("io_uring", SYS_io_uring_setup, 0, 0, 0);
  reaches_kernel("userfaultfd", SYS_userfaultfd, -1, 0, 0);
  return 0;
}
