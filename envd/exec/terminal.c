/* A pseudo terminal for one program: bytes go between its master and two pipes, so that envd reads and writes
 * terminals as it reads and writes pipes. Nothing the program wrote before it ended is lost. */
#define _GNU_SOURCE
#include "svc-exec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define CHUNK 16384

struct stretch {
  char bytes[CHUNK];
  size_t from, to;
};

struct terminal {
  int master;
  int input;  /* read end: what envd types */
  int output; /* write end: what the program shows */
  int silent; /* every program has closed the terminal: polling the master would spin */
  struct stretch typed, shown;
};

static void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

int terminal_resize(struct terminal *terminal, uint32_t cols, uint32_t rows) {
  struct winsize size = {.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};
  if (terminal->master < 0) return ESRCH;
  return ioctl(terminal->master, TIOCSWINSZ, &size) < 0 ? errno : 0;
}

/* In cooked mode the kernel itself erases typed text: a whole character with this bit, a byte without it. */
static void erase_characters(int master) {
  struct termios settings;
  if (tcgetattr(master, &settings) < 0) return;
  settings.c_iflag |= IUTF8;
  tcsetattr(master, TCSANOW, &settings);
}

int terminal_open(struct process *process, uint32_t cols, uint32_t rows, int ends[2], int *step) {
  int typed[2] = {-1, -1}, shown[2] = {-1, -1};
  struct terminal *terminal = calloc(1, sizeof *terminal);
  if (terminal == NULL) return -1;
  terminal->master = terminal->input = terminal->output = -1;
  process->terminal = terminal;
  if (pipe2(typed, O_CLOEXEC) < 0) return -1;
  terminal->input = typed[0];
  ends[0] = typed[1];
  if (pipe2(shown, O_CLOEXEC) < 0) {
    close(typed[1]);
    return -1;
  }
  terminal->output = shown[1];
  ends[1] = shown[0];
  fcntl(terminal->input, F_SETFL, O_NONBLOCK);
  fcntl(terminal->output, F_SETFL, O_NONBLOCK);
  *step = STEP_TERMINAL;
  terminal->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (terminal->master < 0 || unlockpt(terminal->master) < 0 || terminal_resize(terminal, cols, rows) != 0) {
    int error = errno;
    close(ends[0]);
    close(ends[1]);
    errno = error;
    return -1;
  }
  erase_characters(terminal->master);
  return 0;
}

/* In the child, as root, after setsid. */
int terminal_become(struct terminal *terminal, uid_t uid) {
  int slave = ioctl(terminal->master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
  if (slave < 0) slave = open(ptsname(terminal->master), O_RDWR | O_NOCTTY);
  if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0) return -1;
  /* The user owns its terminal, as after a login: programs open it again by name. */
  if (fchown(slave, uid, (gid_t)-1) < 0 || fchmod(slave, 0620) < 0) errno = 0;
  for (int fd = 0; fd < 3; fd++)
    if (dup2(slave, fd) < 0) return -1;
  if (slave > 2) close(slave);
  return 0;
}

size_t terminal_poll(struct terminal *terminal, struct pollfd *fds) {
  short master = 0;
  size_t count = 0;
  if (terminal->shown.from == terminal->shown.to && terminal->output >= 0 && !terminal->silent) master |= POLLIN;
  if (terminal->typed.from < terminal->typed.to && !terminal->silent) master |= POLLOUT;
  if (terminal->master >= 0 && master != 0) fds[count++] = (struct pollfd){.fd = terminal->master, .events = master};
  if (terminal->input >= 0 && terminal->typed.from == terminal->typed.to)
    fds[count++] = (struct pollfd){.fd = terminal->input, .events = POLLIN};
  if (terminal->output >= 0 && terminal->shown.from < terminal->shown.to)
    fds[count++] = (struct pollfd){.fd = terminal->output, .events = POLLOUT};
  return count;
}

/* One step of a copy. 1: some bytes moved. 0: would block. -1: this direction has ended. */
static int fill(int fd, struct stretch *stretch) {
  ssize_t got;
  do got = read(fd, stretch->bytes, CHUNK);
  while (got < 0 && errno == EINTR);
  if (got > 0) {
    stretch->from = 0;
    stretch->to = (size_t)got;
    return 1;
  }
  return got < 0 && errno == EAGAIN ? 0 : -1;
}

static int empty(int fd, struct stretch *stretch) {
  ssize_t put;
  do put = write(fd, stretch->bytes + stretch->from, stretch->to - stretch->from);
  while (put < 0 && errno == EINTR);
  if (put >= 0) {
    stretch->from += (size_t)put;
    return 1;
  }
  return errno == EAGAIN ? 0 : -1;
}

static void hang_up(struct terminal *terminal) {
  close_fd(&terminal->master);
  close_fd(&terminal->input);
  close_fd(&terminal->output);
}

static void pump_out(struct terminal *terminal, int leader_gone) {
  while (terminal->output >= 0) {
    if (terminal->shown.from < terminal->shown.to) {
      int moved = empty(terminal->output, &terminal->shown);
      if (moved == 0) return;
      if (moved < 0) hang_up(terminal); /* envd has closed its end */
      continue;
    }
    int moved = terminal->silent ? -1 : fill(terminal->master, &terminal->shown);
    if (moved > 0) continue;
    if (moved < 0) terminal->silent = 1;
    /* When the leader is gone and nothing is left to read, the terminal ends, even if other processes hold it. */
    if (leader_gone) hang_up(terminal);
    return;
  }
}

static void pump_in(struct terminal *terminal) {
  while (terminal->master >= 0) {
    if (terminal->typed.from < terminal->typed.to) {
      int moved = empty(terminal->master, &terminal->typed);
      if (moved == 0) return;
      if (moved < 0) terminal->typed.from = terminal->typed.to;
      continue;
    }
    if (terminal->input < 0) return;
    int moved = fill(terminal->input, &terminal->typed);
    if (moved < 0) close_fd(&terminal->input);
    if (moved <= 0) return;
  }
}

void terminal_pump(struct terminal *terminal, int leader_gone) {
  pump_in(terminal);
  pump_out(terminal, leader_gone);
}

int terminal_done(const struct terminal *terminal) { return terminal->master < 0; }

void terminal_free(struct terminal *terminal) {
  hang_up(terminal);
  free(terminal);
}
