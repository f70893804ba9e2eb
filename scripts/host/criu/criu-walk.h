/* Paths that a sandbox could influence, for programs that run as root outside of it. */
#pragma once

#include <limits.h>

#define EXPORTED __attribute__((visibility("default")))

/* Where a call goes instead: the directory and the path of an `…at` call. */
struct resolved_path {
  int directory;
  const char *path;
  int opened;
  char name[NAME_MAX + 1];
};

/* The kernel's answer, or -1 with errno. `beyond` is added to RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS. */
int walk_open(int root, const char *path, unsigned long flags, unsigned long mode, unsigned long beyond);

/* The directory of the last part of `path`, which is copied to `name`; -1 with errno. */
int walk_parent(int root, const char *path, unsigned long beyond, char name[NAME_MAX + 1]);

/* Each resolves a path and returns 0, or -1 with errno. A path that no sandbox could influence stays unchanged.
 * to_name ends at the last part, which may be a link; to_new is for creating and removing, and follows no link at the
 * end; to_target follows a link at the end too and leaves an empty path, for AT_EMPTY_PATH. */
int resolve_to_name(struct resolved_path *at, int directory, const char *path);
int resolve_to_new(struct resolved_path *at, int directory, const char *path);
int resolve_to_target(struct resolved_path *at, int directory, const char *path);

/* Closes the directory that was opened for the path. Keeps errno and returns `result`. */
long resolve_end(struct resolved_path *at, long result);

/* A root of a sandbox and a path to be resolved in it: 1, and the descriptor is the caller's if `*opened` says so;
 * 0 where this is another kind of path; -1 with errno. */
int walk_root(int directory, const char *path, int *root, int *opened, const char **rest);
