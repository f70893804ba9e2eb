/* svc-inside remove-ghosts ROOT: takes away what a restore that failed has left in the root of a sandbox. Its input
 * names files, a line each, below that root: `NAME.cr.N.ghost`, and with it NAME where it is the same file. No link
 * of the sandbox's is followed: what is not reached without one is not CRIU's. */

#define _GNU_SOURCE
#include "criu-walk.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *last_of(const char *text, const char *part) {
  const char *found = NULL;
  for (const char *at = text; (at = strstr(at, part)); at++) found = at;
  return found;
}

static void remove_ghost(int root, const char *path) {
  char name[NAME_MAX + 1], original[NAME_MAX + 1];
  int parent = walk_parent(root, path, RESOLVE_NO_SYMLINKS, name);
  if (parent < 0) return;
  const char *end = last_of(name, ".cr.");
  size_t length = strlen(name);
  if (end && length > 6 && !strcmp(name + length - 6, ".ghost")) {
    struct stat ghost, named;
    snprintf(original, sizeof original, "%.*s", (int)(end - name), name);
    if (fstatat(parent, name, &ghost, AT_SYMLINK_NOFOLLOW) == 0 &&
        fstatat(parent, original, &named, AT_SYMLINK_NOFOLLOW) == 0 && ghost.st_dev == named.st_dev &&
        ghost.st_ino == named.st_ino)
      unlinkat(parent, original, 0);
    unlinkat(parent, name, 0);
  }
  close(parent);
}

int main(int count, char **arguments) {
  char line[PATH_MAX + 1];
  if (count != 3 || strcmp(arguments[1], "remove-ghosts")) return 2;
  int root = open(arguments[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return perror(arguments[2]), 1;
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    remove_ghost(root, line);
  }
  return 0;
}
