/* svc-own-renamed ROOT UPPER: makes directories of the image that were renamed the layer's own. An overlay keeps only the
 * new name in its upper layer and a note of the old one; a copy of the layer without notes, as Docker's commit makes it,
 * would have such a directory without its entries. ROOT is the overlay, mounted, in which nothing runs. */

#define _GNU_SOURCE
#include "criu-walk.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NOTE "trusted.overlay.redirect"
#define COPY ".svc-own-renamed"

static int run_in(int directory, char *const arguments[]) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    if (!fchdir(directory)) execvp(arguments[0], arguments);
    _exit(127);
  }
  if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : (errno = EIO, -1);
}

static int make_own(int root, const char *path) {
  char name[NAME_MAX + 1], here[NAME_MAX + 3];
  int parent = walk_parent(root, path, RESOLVE_NO_SYMLINKS, name);
  if (parent < 0) return -1;
  snprintf(here, sizeof here, "./%s", name);
  // A copy that was cut by an earlier attempt.
  int failed = run_in(parent, (char *[]){ "rm", "-rf", COPY, NULL }) ||
               run_in(parent, (char *[]){ "cp", "-a", "--reflink=auto", "--sparse=always", here, COPY, NULL }) ||
               run_in(parent, (char *[]){ "rm", "-rf", here, NULL }) || renameat(parent, COPY, parent, name);
  int why = errno;
  close(parent);
  errno = why;
  return failed ? -1 : 0;
}

/* Paths of the topmost renamed directories, each ended by a zero byte. A copy of one holds those below it too. */
static char *renamed(char *upper, size_t *length) {
  char *list = NULL, *const roots[] = { upper, NULL };
  FILE *out = open_memstream(&list, length);
  FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_XDEV, NULL);
  if (!out || !tree) return NULL;
  errno = 0;
  for (FTSENT *at; (at = fts_read(tree));) {
    if (at->fts_info == FTS_DNR || at->fts_info == FTS_ERR || at->fts_info == FTS_NS) return errno = at->fts_errno, NULL;
    if (at->fts_info != FTS_D || at->fts_level == 0 || lgetxattr(at->fts_accpath, NOTE, NULL, 0) < 0) continue;
    fprintf(out, "%s%c", at->fts_path + strlen(upper) + 1, 0);
    fts_set(tree, at, FTS_SKIP);
  }
  fts_close(tree);
  return fclose(out) ? NULL : list;
}

int main(int count, char **arguments) {
  if (count != 3) return fprintf(stderr, "usage: svc-own-renamed ROOT UPPER\n"), 2;
  size_t length = 0;
  int root = open(arguments[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
  char *list = root < 0 ? NULL : renamed(arguments[2], &length);
  if (!list) return perror("svc-own-renamed"), 1;
  for (char *path = list; path < list + length; path += strlen(path) + 1)
    if (make_own(root, path)) return perror(path), 1;
  return 0;
}
