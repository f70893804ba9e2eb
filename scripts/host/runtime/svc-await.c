/* svc-await DIRECTORY SECONDS: renames the note `waits` in the directory of a container's annotations to `waiting`, and waits
 * until `restore` is there; then it removes the note. Fails once the note or the directory is removed before, or the time is over. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000, NS = 1000000, CHANGES = 4096 };

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * MS + now.tv_nsec / NS;
}

static int has(int directory, const char *name) {
  struct stat found;
  return fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW) == 0;
}

static int fail(const char *why) {
  fprintf(stderr, "svc-await: %s\n", why);
  return 1;
}

int main(int count, char **arguments) {
  if (count != 3) return fail("usage: svc-await DIRECTORY SECONDS"), 2;
  long end = now_ms() + atol(arguments[2]) * MS;
  int directory = open(arguments[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC), watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  // Before the first look, so that no change is missed.
  if (directory < 0 || watch < 0 ||
      inotify_add_watch(watch, arguments[1], IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF) < 0)
    return fail(strerror(errno));
  if (renameat(directory, "waits", directory, "waiting")) return fail("called off");
  for (;;) {
    if (has(directory, "restore")) return unlinkat(directory, "waiting", 0) == 0 ? 0 : fail("called off");
    if (!has(directory, "waiting")) return fail("called off");
    long left = end - now_ms();
    if (left <= 0) return fail("nobody came");
    struct pollfd changed = { .fd = watch, .events = POLLIN };
    if (poll(&changed, 1, (int)left) < 0 && errno != EINTR) return fail(strerror(errno));
    char changes[CHANGES];
    while (read(watch, changes, sizeof changes) > 0) continue;
  }
}
