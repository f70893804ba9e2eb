/* svc-commands: starts programs for the agent. The agent's own process is large, and each fork of it stops its only thread for
 * about ten milliseconds.
 *
 * Standard input has requests, standard output has answers. Each is a frame: the length of what comes after it, the number of a
 * command, a kind, and the rest. Numbers are four bytes in the machine's order, strings end with a zero.
 *
 *   START       the number of arguments, the only PATH in the command's environment (empty: the environment of this program),
 *               the arguments, of which the first is the program, and then what the command reads
 *   KILL        ends the command by SIGKILL
 *   PRINTED, COMPLAINED   what the command has written
 *   ENDED       the status, as waitpid gives it; the process has ended, and no other process holds its output open
 *   REFUSED     the error number; nothing was started
 *
 * It ends with its standard input, so with the agent, and not by a signal for the agent's process group (Ctrl+C): the agent starts it
 * in one of its own. Commands under way then go on, as those of a killed agent do. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START = 1, KILL, PRINTED, COMPLAINED, ENDED, REFUSED };
enum { MOST = 1024, LONGEST = 64 * 1024 * 1024, PIECE = 64 * 1024, MOST_ARGUMENTS = 256 };

struct command {
  uint32_t number;
  pid_t process;
  /* Closed ones are -1. */
  int input, output, complaint;
  int has_ended, status;
  char *request;
  const char *unread;
  size_t left;
};

static struct command commands[MOST];
static size_t count;

static void read_all(void *into, size_t length) {
  for (char *at = into; length > 0;) {
    ssize_t some = read(STDIN_FILENO, at, length);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) exit(0);
    at += some, length -= (size_t)some;
  }
}

static void answer(uint32_t number, uint32_t kind, const void *rest, size_t length) {
  uint32_t head[] = { (uint32_t)(2 * sizeof *head + length), number, kind };
  struct iovec parts[] = { { head, sizeof head }, { (void *)rest, length } };
  for (int part = 0; part < 2;) {
    ssize_t some = writev(STDOUT_FILENO, parts + part, 2 - part);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) exit(1);
    for (; part < 2 && (size_t)some >= parts[part].iov_len; part++) some -= (ssize_t)parts[part].iov_len;
    if (part < 2) parts[part].iov_base = (char *)parts[part].iov_base + some, parts[part].iov_len -= (size_t)some;
  }
}

static void answer_number(uint32_t number, uint32_t kind, int value) {
  int32_t rest = value;
  answer(number, kind, &rest, sizeof rest);
}

static void close_it(int *file) {
  if (*file >= 0) close(*file);
  *file = -1;
}

/* In the child. Writes to `failed` why the program cannot be started. */
static void become(char **arguments, const char *path, const int ends[3], int failed) {
  static char only[PIECE], *environment[] = { only, NULL };
  sigset_t none;
  for (int one = 0; one < 3; one++)
    if (dup2(ends[one], one) < 0) goto fail;
  signal(SIGPIPE, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (*path) {
    strcpy(only, "PATH=");
    strncat(only, path, sizeof only - sizeof "PATH=");
    environ = environment;
  }
  execvp(*arguments, arguments);
fail:;
  // A PATH in which each directory is too long leaves no number.
  int why = errno ? errno : ENOENT;
  ssize_t written = write(failed, &why, sizeof why);
  (void)written;
  _exit(127);
}

/* Returns 0 or an error number. */
static int start(struct command *one, char **arguments, const char *path) {
  int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 }, failed[2] = { -1, -1 }, why = 0;
  if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) || pipe2(failed, O_CLOEXEC)) why = errno;
  if (!why && (one->process = fork()) < 0) why = errno;
  if (!why && !one->process) become(arguments, path, (int[]){ in[0], out[1], err[1] }, failed[1]);
  close_it(&in[0]), close_it(&out[1]), close_it(&err[1]), close_it(&failed[1]);
  // Ends when the program has replaced the child.
  if (!why && read(failed[0], &why, sizeof why) > 0) waitpid(one->process, NULL, 0);
  close_it(&failed[0]);
  if (why) {
    close_it(&in[1]), close_it(&out[0]), close_it(&err[0]);
    return why;
  }
  fcntl(in[1], F_SETFL, O_NONBLOCK);
  one->input = in[1], one->output = out[0], one->complaint = err[0];
  return 0;
}

/* The string at `at`, which then is after it; NULL when there is none. */
static char *string(char **at, const char *end) {
  char *text = *at, *zero = memchr(text, 0, (size_t)(end - text));
  if (zero) *at = zero + 1;
  return zero ? text : NULL;
}

static void begin(uint32_t number, char *request, size_t length) {
  char *arguments[MOST_ARGUMENTS + 1], *at = request + sizeof(uint32_t), *end = request + length, *path;
  uint32_t given, got = 0;
  struct command one = { .number = number, .request = request };
  int why = EINVAL;
  if (length < sizeof given) goto refuse;
  memcpy(&given, request, sizeof given);
  if (!given || given > MOST_ARGUMENTS || !(path = string(&at, end))) goto refuse;
  while (got < given && (arguments[got] = string(&at, end))) got++;
  if (got < given) goto refuse;
  arguments[given] = NULL;
  one.unread = at, one.left = (size_t)(end - at);
  why = count == MOST ? EAGAIN : start(&one, arguments, path);
  if (why) goto refuse;
  if (!one.left) close_it(&one.input);
  commands[count++] = one;
  return;
refuse:
  free(request);
  answer_number(number, REFUSED, why);
}

static void take_request(void) {
  uint32_t head[3];
  read_all(head, sizeof head);
  size_t length = head[0] - 2 * sizeof *head;
  if (head[0] < 2 * sizeof *head || length > LONGEST) exit(2);
  char *request = malloc(length + 1);
  if (!request) exit(2);
  read_all(request, length);
  if (head[2] == START) {
    begin(head[1], request, length);
    return;
  }
  free(request);
  for (size_t i = 0; i < count; i++)
    if (commands[i].number == head[1] && !commands[i].has_ended) kill(commands[i].process, SIGKILL);
}

static void feed(struct command *one) {
  ssize_t some = write(one->input, one->unread, one->left);
  if (some < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // A command may end, or close its input, before it has read all.
  if (some < 0) one->left = 0;
  else one->unread += some, one->left -= (size_t)some;
  if (!one->left) close_it(&one->input);
}

static void pass(struct command *one, int *from, uint32_t kind) {
  static char piece[PIECE];
  ssize_t some = read(*from, piece, sizeof piece);
  if (some < 0 && errno == EINTR) return;
  if (some > 0) answer(one->number, kind, piece, (size_t)some);
  else close_it(from);
}

static void reap(void) {
  for (size_t i = 0; i < count; i++)
    if (!commands[i].has_ended && waitpid(commands[i].process, &commands[i].status, WNOHANG) > 0) commands[i].has_ended = 1;
}

static void forget_ended(void) {
  for (size_t i = 0; i < count;) {
    struct command *one = &commands[i];
    if (!one->has_ended || one->output >= 0 || one->complaint >= 0) {
      i++;
      continue;
    }
    answer_number(one->number, ENDED, one->status);
    close_it(&one->input);
    free(one->request);
    *one = commands[--count];
  }
}

int main(void) {
  static struct pollfd watched[2 + 3 * MOST];
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  signal(SIGPIPE, SIG_IGN);
  int ends = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  if (ends < 0) return 1;
  for (;;) {
    size_t known = count;
    watched[0] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
    watched[1] = (struct pollfd){ .fd = ends, .events = POLLIN };
    // The kernel passes over those that are -1.
    for (size_t i = 0; i < known; i++) {
      watched[2 + 3 * i] = (struct pollfd){ .fd = commands[i].input, .events = POLLOUT };
      watched[3 + 3 * i] = (struct pollfd){ .fd = commands[i].output, .events = POLLIN };
      watched[4 + 3 * i] = (struct pollfd){ .fd = commands[i].complaint, .events = POLLIN };
    }
    if (poll(watched, 2 + 3 * known, -1) < 0 && errno != EINTR) return 1;
    for (size_t i = 0; i < known; i++) {
      if (watched[2 + 3 * i].revents) feed(&commands[i]);
      if (watched[3 + 3 * i].revents) pass(&commands[i], &commands[i].output, PRINTED);
      if (watched[4 + 3 * i].revents) pass(&commands[i], &commands[i].complaint, COMPLAINED);
    }
    if (watched[1].revents) {
      struct signalfd_siginfo one;
      while (read(ends, &one, sizeof one) > 0) continue;
      reap();
    }
    forget_ended();
    if (watched[0].revents) take_request();
  }
}
