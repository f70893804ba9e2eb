/* svc-shell DIRECTORY PIDFILE GROUP PROGRAM ARGUMENT…: stands for the first process of a container that has no processes yet,
 * a shell. svc-runc starts it in place of `runc create`; Docker and its shim take it for the container's process.
 *
 * DIRECTORY is the container's annotations. Who connects to the socket `call` there starts PROGRAM, which restores the
 * container's processes; its first one becomes a child of this program, because this program adopts orphans. The caller gets
 * `ok PID`, or the reasons in the file `words`. From then on this program ends as that process ends, so that the shim sees
 * the end that it would see without a shell. It ends at once when the socket is removed before.
 *
 * GROUP is the container's directory in the hierarchy of memory: the shim watches the group in which it finds this program,
 * which leaves it when the restore begins. Nothing of a sandbox reaches this program: it is in no namespace of the container. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKET "call"
/* Processes whose end came before it was known which of them is the container's first: helpers of CRIU, too. */
enum { MOST_ENDED = 256, OFFER = 4 };

static struct {
  pid_t pid;
  int status;
} ended[MOST_ENDED];
static unsigned ended_count;

static void give_up(const char *what) {
  fprintf(stderr, "svc-shell: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* The path of a socket may be shorter than that of the directory. */
static int listen_in(int directory) {
  struct sockaddr_un name = { .sun_family = AF_UNIX };
  int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(name.sun_path, sizeof name.sun_path, "/proc/self/fd/%d/" SOCKET, directory);
  if (listening < 0 || bind(listening, (struct sockaddr *)&name, sizeof name) || listen(listening, OFFER))
    give_up("its socket");
  return listening;
}

/* @param end  nothing in the file of the shim, which takes no line for a number */
static int write_number(int directory, const char *name, pid_t number, const char *end) {
  int file = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  int written = dprintf(file, "%d%s", number, end);
  return close(file) || written < 0 ? -1 : 0;
}

static void join(const char *group) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/cgroup.procs", group);
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, "0", 1) != 1) give_up(path);
  close(file);
}

static void leave(const char *group) {
  char above[PATH_MAX];
  snprintf(above, sizeof above, "%s", group);
  char *last = strrchr(above, '/');
  if (last) *last = 0;
  join(above);
}

/* Whether the socket, or its directory, was removed. */
static int is_over(int watch) {
  _Alignas(struct inotify_event) char events[4096];
  ssize_t length = read(watch, events, sizeof events);
  for (char *at = events; at < events + length;) {
    const struct inotify_event *event = (void *)at;
    if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) return 1;
    if ((event->mask & IN_DELETE) && event->len && !strcmp(event->name, SOCKET)) return 1;
    at += sizeof *event + event->len;
  }
  return 0;
}

static void end_unused(int directory, const char *group) {
  unlinkat(directory, "waiting", 0);
  leave(group);
  rmdir(group);
  raise(SIGKILL);
}

static int wait_for_caller(int listening, int watch) {
  struct pollfd both[] = { { .fd = listening, .events = POLLIN }, { .fd = watch, .events = POLLIN } };
  for (;;) {
    if (poll(both, 2, -1) < 0 && errno != EINTR) return -1;
    if ((both[1].revents & POLLIN) && is_over(watch)) return -1;
    int caller = both[0].revents & POLLIN ? accept4(listening, NULL, NULL, SOCK_CLOEXEC) : -1;
    if (caller >= 0) return caller;
  }
}

/* Resolves to the status of `pid`, and notes those of others that end before. */
static int status_of(pid_t pid) {
  for (unsigned i = 0; i < ended_count && i < MOST_ENDED; i++)
    if (ended[i].pid == pid) return ended[i].status;
  for (;;) {
    int status;
    pid_t one = waitpid(-1, &status, 0);
    if (one == pid) return status;
    if (one < 0 && errno != EINTR) return 1 << 8;
    if (one <= 0) continue;
    ended[ended_count % MOST_ENDED].pid = one;
    ended[ended_count++ % MOST_ENDED].status = status;
  }
}

static void end_as(int status) {
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  struct rlimit none = { 0 };
  setrlimit(RLIMIT_CORE, &none);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}

static pid_t read_number(const char *path) {
  char text[32] = "";
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  return length > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* A caller that is gone costs nothing: the restore counts all the same. */
static void answer(int caller, const char *text, size_t length) {
  while (length > 0) {
    ssize_t some = send(caller, text, length, MSG_NOSIGNAL);
    if (some <= 0) return;
    text += some, length -= (size_t)some;
  }
}

static void pass_words(int directory, int caller) {
  char text[8192];
  ssize_t length;
  int file = openat(directory, "words", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  while (file >= 0 && (length = read(file, text, sizeof text)) > 0) answer(caller, text, (size_t)length);
}

static void restore(int directory, int caller, const char *pid_file, char **program) {
  pid_t restoring = fork();
  if (restoring == 0) {
    setenv("SVC_SHELL", "restores", 1);
    execv(program[0], program);
    _exit(127);
  }
  int status = restoring < 0 ? 1 << 8 : status_of(restoring);
  pid_t first = status == 0 ? read_number(pid_file) : 0;
  if (first <= 0 || write_number(directory, "process", first, "\n")) {
    pass_words(directory, caller);
    _exit(1);
  }
  char text[32];
  answer(caller, text, (size_t)snprintf(text, sizeof text, "ok %d\n", first));
  close(caller);
  end_as(status_of(first));
}

int main(int count, char **arguments) {
  if (count < 5) return fprintf(stderr, "usage: svc-shell DIRECTORY PIDFILE GROUP PROGRAM ARGUMENT…\n"), 2;
  const char *pid_file = arguments[2], *group = arguments[3];
  int directory = open(arguments[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) give_up(arguments[1]);
  int watch = inotify_init1(IN_CLOEXEC);
  if (watch < 0 || inotify_add_watch(watch, arguments[1], IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF) < 0)
    give_up("a watch of its directory");
  int listening = listen_in(directory);
  if (mkdir(group, 0755) && errno != EEXIST) give_up(group);
  join(group);
  pid_t child = fork();
  if (child < 0) give_up("a process");
  if (child > 0) {
    // svc-runc reads the first, the shim the second.
    if (write_number(directory, "waiting", child, "\n") || write_number(AT_FDCWD, pid_file, child, "")) {
      kill(child, SIGKILL);
      give_up(pid_file);
    }
    return 0;
  }
  setsid();
  if (prctl(PR_SET_CHILD_SUBREAPER, 1)) give_up("a subreaper");
  int caller = wait_for_caller(listening, watch);
  if (caller < 0) end_unused(directory, group);
  close(listening);
  close(watch);
  leave(group);
  unlinkat(directory, "waiting", 0);
  restore(directory, caller, pid_file, arguments + 4);
}
