/* Removes the files that CRIU has made in the root of a sandbox. Reads their names, relative to that root, from its
 * input. Follows no link of the sandbox: CRIU did not make a file that is only reachable through a link.
 *
 * svc-inside remove-ghosts ROOT: after a failed restore; one `NAME.cr.N.ghost` a line. Removes NAME too if it is the same
 * file.
 * svc-inside remove-links ROOT: after a dump; names `link_remap.N`, each followed by a zero byte, see criu-links.c. */

#define _GNU_SOURCE
#include "criu-walk.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
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

static void remove_link(int root, const char *path) {
  static const char prefix[] = "link_remap.";
  char name[NAME_MAX + 1];
  int parent = walk_parent(root, path, RESOLVE_NO_SYMLINKS, name);
  if (parent < 0) return;
  const char *number = name + strlen(prefix);
  if (!strncmp(name, prefix, strlen(prefix)) && *number && !number[strspn(number, "0123456789")])
    unlinkat(parent, name, 0);
  close(parent);
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  int ghosts = !strcmp(arguments[1], "remove-ghosts"), links = !strcmp(arguments[1], "remove-links");
  if (!ghosts && !links) return 2;
  int root = open(arguments[2], O_PATH | O_DIRECTORY | O_CLOEXEC), end = ghosts ? '\n' : 0;
  if (root < 0) return perror(arguments[2]), 1;
  char *name = NULL;
  size_t size = 0;
  for (ssize_t length; (length = getdelim(&name, &size, end, stdin)) > 0;) {
    if (name[length - 1] == end) name[length - 1] = 0;
    if (ghosts) remove_ghost(root, name);
    else remove_link(root, name);
  }
  free(name);
  return 0;
}
