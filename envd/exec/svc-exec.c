/* svc-exec: the system calls that Node lacks, for envd alone. It starts, signals and reaps the sandbox's programs,
 * carries terminals, watches directories and keeps file attributes. envd is its parent and speaks frames over a
 * socket on fd 3; when that closes, it ends. Idle, it sleeps in one poll. */
#define _GNU_SOURCE
#include "svc-exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct process *processes;

static void woken(int signal_number) { (void)signal_number; }

static struct process *process_of(pid_t pid) {
  struct process *process = processes;
  while (process != NULL && process->pid != pid) process = process->next;
  return process;
}

static void send_signal(uint32_t id, struct reader *reader) {
  pid_t pid = (pid_t)read_u32(reader);
  int signal_number = (int)read_u32(reader);
  uint32_t group = read_u32(reader);
  const struct process *process = process_of(pid);
  int error = 0;
  if (reader->broken || pid <= 1) error = EPROTO;
  /* The kernel may reuse the id of a reaped process at once. A group id stays in use while any member lives. */
  else if (group ? kill(-pid, signal_number) < 0 : process == NULL || process->reaped || kill(pid, signal_number) < 0)
    error = ESRCH;
  reply(id, error);
}

static void resize(uint32_t id, struct reader *reader) {
  const struct process *process = process_of((pid_t)read_u32(reader));
  uint32_t cols = read_u32(reader), rows = read_u32(reader);
  reply(id, process == NULL || process->terminal == NULL ? ESRCH : terminal_resize(process->terminal, cols, rows));
}

static void let_go(struct reader *reader) {
  struct process *process = process_of((pid_t)read_u32(reader));
  if (process != NULL) close_held(process);
}

static void handle(uint8_t kind, uint32_t id, struct reader *reader) {
  switch ((enum request_kind)kind) {
    case REQUEST_SPAWN: spawn(id, reader); return;
    case REQUEST_RELEASE: let_go(reader); return;
    case REQUEST_SIGNAL: send_signal(id, reader); return;
    case REQUEST_RESIZE: resize(id, reader); return;
    case REQUEST_WATCH: notify_watch(id, reader); return;
    case REQUEST_UNWATCH: notify_unwatch(id, reader); return;
    case REQUEST_SYNC: notify_drain(); reply(id, 0); return;
    case REQUEST_UNWATCH_ALL: notify_close(); reply(id, 0); return;
    case REQUEST_GET_ATTRIBUTES: attributes_get(id, reader); return;
    case REQUEST_SET_ATTRIBUTES: attributes_set(id, reader); return;
  }
  reply(id, ENOSYS);
}

static void serve_one(void) {
  uint32_t size, id;
  char *frame = receive_frame(&size);
  if (frame == NULL) exit(0);
  struct reader reader = {.at = frame + 1, .end = frame + size, .broken = 0};
  id = read_u32(&reader);
  handle((uint8_t)frame[0], id, &reader);
  free(frame);
}

static void reap(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    struct process *process = process_of(pid);
    if (process == NULL) continue;
    process->reaped = 1;
    /* envd gets the answer to the start before the message about the end. */
    if (process->status >= 0) spawn_settled(process);
    if (process->failed) continue;
    answer_start(ANSWER_EXIT, 0);
    answer_u32((uint32_t)pid);
    answer_u32((uint32_t)status);
    answer_send();
  }
}

/* Copies pending bytes, and removes processes and terminals that have ended. */
static void tend(void) {
  for (struct process **link = &processes; *link != NULL;) {
    struct process *process = *link;
    if (process->terminal != NULL) terminal_pump(process->terminal, process->reaped);
    int open = process->held[0] >= 0 || process->held[1] >= 0 || process->held[2] >= 0;
    int showing = process->terminal != NULL && !terminal_done(process->terminal) && !process->failed;
    if (!process->reaped || open || showing) {
      link = &process->next;
      continue;
    }
    *link = process->next;
    if (process->terminal != NULL) terminal_free(process->terminal);
    free(process);
  }
}

static void settle(const struct pollfd *fds, size_t count) {
  for (struct process *process = processes; process != NULL; process = process->next)
    for (size_t i = 0; i < count && process->status >= 0; i++)
      if (fds[i].fd == process->status && fds[i].revents != 0) spawn_settled(process);
}

static size_t gather(struct pollfd **fds, size_t *room) {
  size_t count = 2;
  for (struct process *process = processes; process != NULL; process = process->next) count += 1 + TERMINAL_FDS;
  if (count > *room) {
    struct pollfd *grown = realloc(*fds, count * 2 * sizeof **fds);
    if (grown == NULL) exit(70);
    *fds = grown;
    *room = count * 2;
  }
  (*fds)[0] = (struct pollfd){.fd = CONTROL_FD, .events = POLLIN};
  (*fds)[1] = (struct pollfd){.fd = notify_fd(), .events = POLLIN};
  count = 2;
  for (struct process *process = processes; process != NULL; process = process->next) {
    if (process->status >= 0) (*fds)[count++] = (struct pollfd){.fd = process->status, .events = POLLIN};
    if (process->terminal != NULL) count += terminal_poll(process->terminal, *fds + count);
  }
  return count;
}

int main(void) {
  struct pollfd *fds = NULL;
  size_t room = 0;
  sigset_t none, child;
  struct sigaction action = {.sa_handler = woken, .sa_flags = SA_NOCLDSTOP};

  close_range(CONTROL_FD + 1, ~0u, 0);
  fcntl(CONTROL_FD, F_SETFD, FD_CLOEXEC);
  /* Node passes a non-blocking socket; frames are read and written whole, so it must block. */
  fcntl(CONTROL_FD, F_SETFL, fcntl(CONTROL_FD, F_GETFL) & ~O_NONBLOCK);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  sigaction(SIGCHLD, &action, NULL);
  sigemptyset(&none);
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);

  for (;;) {
    size_t count = gather(&fds, &room);
    int ready = ppoll(fds, count, NULL, &none);
    if (ready > 0) {
      settle(fds, count);
      if (fds[1].revents != 0) notify_drain();
    }
    reap();
    if (ready > 0 && fds[0].revents != 0) serve_one();
    tend();
  }
}
