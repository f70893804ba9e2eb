/* A library that is loaded into an unmodified CRIU. It changes:
 *
 * Limits of another user's process. Reading them with prlimit(2) needs CAP_SYS_RESOURCE, which root does not
 * have on some machines; CRIU reads them for every process that it dumps and gives up. This file then
 * reads the same numbers from /proc/PID/limits. Where the call works, it changes nothing.
 *
 * Registers of a process that was stopped in poll, nanosleep or a futex with a time limit. The kernel
 * keeps the rest of the time where no restore can put it, and CRIU makes such a call fail
 * with EINTR, in the image and in the process that goes on. Programs that never get signals take
 * that for an error. This file makes the call start again from its beginning: late instead of broken.
 *
 * Stopped processes (Ctrl-Z). The kernel attaches a tracer when the process has answered, and a freezer
 * of cgroups version 1 keeps the process from answering: CRIU would wait for ever. This file moves the process
 * from the frozen group to another one for that moment; a stopped process does not run there either.
 *
 * Handles of files without a name. CRIU opens the file that a process watches by its handle and refuses one whose name was removed;
 * this file lets such a handle fail, so that CRIU looks the path up (agent/snapshots/criu/svc-watch-paths.c has written one).
 *
 * Large memory that a process has reserved and not used (Chromium, Go, Java: tens of gigabytes). CRIU maps it writable for a moment,
 * and the kernel refuses that where it is more than the machine has: this file lets such a mapping reserve nothing.
 *
 * The oom_score_adj of a restored process. CRIU writes it only if the value in the image is not 0, and a
 * process would inherit the protection of the program that starts CRIU: this file sets it to 0 first.
 */

#define _GNU_SOURCE
#include "criu-mounts.h"
#include "criu-walk.h"
#include "dump/criu-cgroups.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>


/* A heading, then a line for each resource in the order of their numbers; see proc_pid_limits in fs/proc/base.c. */
enum { SOFT_COLUMN = 26, HARD_COLUMN = 47, LONGEST_FILE = 4096 };

/* Returns 0, or -1 if the text is not a number, which means that the format of the file has changed. */
static int parse(const char *text, unsigned long *value) {
  if (*text == 'u') {
    *value = ~0UL;
    return 0;
  }
  if (*text < '0' || *text > '9') return -1;
  *value = 0;
  for (; *text >= '0' && *text <= '9'; text++) *value = *value * 10 + (unsigned long)(*text - '0');
  return 0;
}

/* Reads /proc/PID/NAME as a zero-terminated string. Returns its length, or -1. */
static long read_proc(pid_t pid, const char *name, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  size_t filled = 0;
  ssize_t got;
  while (filled < size - 1 && (got = read(file, text + filled, size - 1 - filled)) > 0) filled += (size_t)got;
  close(file);
  text[filled] = 0;
  return (long)filled;
}

static int from_proc(pid_t pid, int resource, unsigned long *limits) {
  char text[LONGEST_FILE];
  long length = read_proc(pid, "limits", text, sizeof text);
  if (length <= 0) return -1;
  const char *line = text, *end = text + length;
  for (int passed = 0; passed <= resource; passed++) {
    while (line < end && *line != '\n') line++;
    if (line < end) line++;
  }
  if (end - line <= HARD_COLUMN) return -1;
  return parse(line + SOFT_COLUMN, &limits[0]) || parse(line + HARD_COLUMN, &limits[1]) ? -1 : 0;
}

static void begin_unprotected(void) {
  int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  if (write(file, "0", 1) != 1) perror("/proc/self/oom_score_adj");
  close(file);
}

static int is_deleted(int file) {
  static const char END[] = " (deleted)";
  char name[64], path[PATH_MAX];
  snprintf(name, sizeof name, "/proc/self/fd/%d", file);
  long length = readlinkat(AT_FDCWD, name, path, sizeof path - 1), end = sizeof END - 1;
  path[length < 0 ? 0 : length] = 0;
  return length > end && !strcmp(path + length - end, END);
}

/* CRIU calls prlimit by its number. A limit is two longs on every architecture that this product supports. */
EXPORTED long syscall(long number, ...) {
  static long (*real)(long, ...);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "syscall");

  long arguments[6];
  va_list given;
  va_start(given, number);
  for (int i = 0; i < 6; i++) arguments[i] = va_arg(given, long);
  va_end(given);

  long result;
  if (move_inside(number, arguments, &result, real) || keep_cgroups(number, arguments, &result, real)) return result;
  result =
    real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
  // CRIU uses clone3 only for the processes that it restores, to choose their ids.
  if (number == SYS_clone3 && result == 0) begin_unprotected();
  // A watched file without a name: CRIU wants a path for it, and asks for one only when the handle does not open.
  if (number == SYS_open_by_handle_at && result >= 0 && is_deleted((int)result)) {
    close((int)result);
    errno = ESTALE;
    return -1;
  }
  if (result != -1 || number != SYS_prlimit64 || errno != EPERM) return result;

  pid_t pid = (pid_t)arguments[0];
  unsigned long *limits = (unsigned long *)arguments[3];
  if (pid > 0 && !arguments[2] && limits && from_proc(pid, (int)arguments[1], limits) == 0) return 0;
  errno = EPERM;
  return -1;
}

/* Smaller ones are no more than a machine has. */
enum { LARGE_MAPPING = 64 * 1024 * 1024 };

EXPORTED void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  int reserves = (flags & MAP_PRIVATE) && (flags & MAP_ANONYMOUS) && size >= LARGE_MAPPING;
  return (void *)syscall(SYS_mmap, address, size, protection, reserves ? flags | MAP_NORESERVE : flags, file, offset);
}

EXPORTED void *mmap64(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  return mmap(address, size, protection, flags, file, offset);
}

#define FREEZER "/sys/fs/cgroup/freezer"
/* The group is not removed, because another dump may use it. */
#define STOPPED FREEZER "/svc-stopped"

/* Fills in the `tasks` file of the freezer group of a stopped task. Returns whether there is one. */
static int group_of_stopped(pid_t task, char *tasks, size_t size) {
  char text[8192];
  if (read_proc(task, "wchan", text, sizeof text) <= 0 || strcmp(text, "do_signal_stop")) return 0;
  if (read_proc(task, "cgroup", text, sizeof text) <= 0) return 0;
  char *group = strstr(text, ":freezer:");
  if (!group) return 0;
  group += strlen(":freezer:");
  group[strcspn(group, "\n")] = 0;
  snprintf(tasks, size, FREEZER "%s/tasks", group);
  return 1;
}

static void move(pid_t task, const char *tasks) {
  char number[16];
  int length = snprintf(number, sizeof number, "%d", task);
  int file = open(tasks, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, number, (size_t)length) != length) perror(tasks);
  if (file >= 0) close(file);
}

/* Error numbers that only the kernel and a tracer see; see include/linux/errno.h. */
enum { RESTART_IF_NO_HANDLER = 514, RESTART_WITH_REST_OF_TIME = 516 };

static void begin_call_again(const struct iovec *set) {
#ifdef __x86_64__
  struct user_regs_struct *registers = set->iov_base;
  if (set->iov_len != sizeof *registers || (long)registers->orig_rax < 0) return;
  if ((int)registers->rax == -RESTART_WITH_REST_OF_TIME) registers->rax = (unsigned long)(long)-RESTART_IF_NO_HANDLER;
#else
  (void)set;
#endif
}

EXPORTED long ptrace(enum __ptrace_request request, ...) {
  static long (*real)(enum __ptrace_request, ...);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "ptrace");

  va_list given;
  va_start(given, request);
  pid_t pid = va_arg(given, pid_t);
  void *address = va_arg(given, void *), *data = va_arg(given, void *);
  va_end(given);

  char group[sizeof FREEZER + 8192];
  int stopped = request == PTRACE_SEIZE && group_of_stopped(pid, group, sizeof group);
  if (stopped) {
    mkdir(STOPPED, 0755);
    move(pid, STOPPED "/tasks");
  }
  long result = real(request, pid, address, data);
  int reason = errno;
  if (stopped) move(pid, group);
  errno = reason;
  if (result == 0 && request == PTRACE_GETREGSET && (long)address == NT_PRSTATUS) begin_call_again(data);
  return result;
}
