/* A sandbox whose processes talk with each other over TCP, and one of them with the outside:
 *
 *   talk OWN-ADDRESS OUTSIDE-ADDRESS OUTSIDE-PORT
 *
 * Every 10 ms it sends a number over a connection each to 127.0.0.1, to its own address and to ::1, and awaits it back. It
 * writes to /state: the number of the round, a word for each of the three (`ok` or the reason of the failure), and one for
 * the connection to the outside (`open` or the reason of its end). A writer fills the connection to a reader that begins to
 * read when the file /go exists, and then writes what came to /bulk. A third connection was ended by its server after three
 * bytes, which are read when /go exists; /half has what came. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ECHO = 7001, BULK = 7002, HALF = 7003, PENDING = 7004, MOST = 16, BULK_BYTES = 32 << 20, PATTERN = 251 };

union address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
};

static void fail(const char *what) {
  FILE *file = fopen("/failed", "w");
  if (file) fprintf(file, "%s: %s\n", what, strerror(errno)), fclose(file);
  exit(1);
}

static socklen_t fill(union address *to, const char *text, int port) {
  memset(to, 0, sizeof *to);
  if (strchr(text, ':')) {
    to->v6.sin6_family = AF_INET6;
    to->v6.sin6_port = htons((uint16_t)port);
    inet_pton(AF_INET6, text, &to->v6.sin6_addr);
    return sizeof to->v6;
  }
  to->v4.sin_family = AF_INET;
  to->v4.sin_port = htons((uint16_t)port);
  inet_pton(AF_INET, text, &to->v4.sin_addr);
  return sizeof to->v4;
}

static int listen_at(const char *text, int port) {
  union address at;
  socklen_t size = fill(&at, text, port);
  int one = 1, listener = socket(at.any.sa_family, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, &at.any, size) || listen(listener, 8)) fail("listen");
  return listener;
}

static int connected(const char *text, int port) {
  union address to;
  socklen_t size = fill(&to, text, port);
  int file = socket(to.any.sa_family, SOCK_STREAM, 0);
  if (connect(file, &to.any, size)) fail(text);
  return file;
}

static void echo(int *listeners, int count) {
  struct pollfd all[MOST];
  for (int i = 0; i < count; i++) all[i] = (struct pollfd) { .fd = listeners[i], .events = POLLIN };
  int used = count;
  for (;;) {
    if (poll(all, (nfds_t)used, -1) < 0) continue;
    for (int i = 0; i < used; i++) {
      if (!all[i].revents) continue;
      if (i < count) {
        int file = accept(all[i].fd, NULL, NULL);
        if (file >= 0 && used < MOST) all[used++] = (struct pollfd) { .fd = file, .events = POLLIN };
        continue;
      }
      char bytes[64];
      ssize_t got = recv(all[i].fd, bytes, sizeof bytes, 0);
      if (got > 0) send(all[i].fd, bytes, (size_t)got, MSG_NOSIGNAL);
      else close(all[i].fd), all[i] = all[--used];
    }
  }
}

static void pause_briefly(void) { nanosleep(&(struct timespec) { .tv_nsec = 10 * 1000 * 1000 }, NULL); }

static void until_go(void) {
  while (access("/go", F_OK)) pause_briefly();
}

static void report(const char *name, const char *text) {
  char fresh[32];
  snprintf(fresh, sizeof fresh, "%s.new", name);
  FILE *file = fopen(fresh, "w");
  if (!file) return;
  fputs(text, file);
  fclose(file);
  rename(fresh, name);
}

static void read_bulk(int file) {
  static unsigned char bytes[65536];
  char text[64];
  long total = 0, wrong = 0;
  ssize_t got;
  until_go();
  while ((got = recv(file, bytes, sizeof bytes, 0)) > 0)
    for (ssize_t i = 0; i < got; i++) wrong += bytes[i] != (unsigned char)(total++ % PATTERN);
  snprintf(text, sizeof text, "%ld of %d, %ld wrong, %s", total, BULK_BYTES, wrong, got ? strerror(errno) : "end");
  report("/bulk", text);
}

static void write_bulk(int file) {
  static unsigned char bytes[65536];
  for (long total = 0; total < BULK_BYTES;) {
    long size = BULK_BYTES - total < (long)sizeof bytes ? BULK_BYTES - total : (long)sizeof bytes;
    for (long i = 0; i < size; i++) bytes[i] = (unsigned char)((total + i) % PATTERN);
    ssize_t sent = send(file, bytes, (size_t)size, MSG_NOSIGNAL);
    if (sent <= 0) break;
    total += sent;
  }
  shutdown(file, SHUT_WR);
}

static void read_half(int file) {
  char bytes[16] = { 0 }, text[64];
  until_go();
  ssize_t got = recv(file, bytes, sizeof bytes - 1, MSG_WAITALL);
  snprintf(text, sizeof text, "%s", got < 0 ? strerror(errno) : bytes);
  report("/half", text);
}

/* The kernel ends a wait with a time limit when the process is frozen, and does not begin it again (signal(7)). */
static ssize_t receive(int file, void *bytes, size_t size) {
  ssize_t got;
  do got = recv(file, bytes, size, MSG_WAITALL);
  while (got < 0 && errno == EINTR);
  return got;
}

static void exchange(int file, int number, const char **word) {
  int back = -1;
  if (strcmp(*word, "ok")) return;
  ssize_t sent = send(file, &number, sizeof number, MSG_NOSIGNAL);
  ssize_t got = sent == sizeof number ? receive(file, &back, sizeof back) : -1;
  if (got != sizeof back) *word = got == 0 ? "end" : strerror(errno);
  else if (back != number) *word = "wrong";
}

/* Notes the end of a connection on which nothing is to come. */
static void look(int file, const char **word) {
  char byte;
  ssize_t got = recv(file, &byte, 1, MSG_DONTWAIT);
  if (!strcmp(*word, "open") && (got == 0 || (got < 0 && errno != EAGAIN))) *word = got == 0 ? "end" : strerror(errno);
}

static int forked(void) {
  int child = fork();
  if (child < 0) fail("fork");
  return child == 0;
}

int main(int count, char **arguments) {
  if (count != 4) return 2;
  const char *addresses[] = { "127.0.0.1", arguments[1], "::1" };
  const char *words[] = { "ok", "ok", "ok" }, *outside = "open", *pending = "open";
  int listeners[3], files[3];
  for (int i = 0; i < 3; i++) listeners[i] = listen_at(addresses[i], ECHO);
  int bulk = listen_at("127.0.0.1", BULK), half = listen_at("127.0.0.1", HALF), never = listen_at("127.0.0.1", PENDING);

  if (forked()) echo(listeners, 3), exit(0);
  for (int i = 0; i < 3; i++) {
    files[i] = connected(addresses[i], ECHO);
    setsockopt(files[i], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval) { .tv_sec = 10 }, sizeof(struct timeval));
  }

  int writer = connected("127.0.0.1", BULK), reader = accept(bulk, NULL, NULL);
  if (forked()) close(reader), write_bulk(writer), pause(), exit(0);
  if (forked()) close(writer), read_bulk(reader), pause(), exit(0);
  close(writer), close(reader);

  int client = connected("127.0.0.1", HALF), server = accept(half, NULL, NULL);
  send(server, "bye", 3, 0);
  close(server);
  if (forked()) read_half(client), pause(), exit(0);
  close(client);

  // Nobody accepts this one.
  int waiting = connected("127.0.0.1", PENDING);
  (void)never;
  int out = connected(arguments[2], atoi(arguments[3]));
  for (int round = 1;; round++) {
    char text[256];
    for (int i = 0; i < 3; i++) exchange(files[i], round, &words[i]);
    look(out, &outside);
    look(waiting, &pending);
    snprintf(text, sizeof text, "%d|%s|%s|%s|%s|%s", round, words[0], words[1], words[2], outside, pending);
    report("/state", text);
    pause_briefly();
  }
}
