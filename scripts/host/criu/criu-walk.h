/* Resolves paths that a sandbox could influence, for programs that run as root outside the sandbox. */
#pragma once

#include <limits.h>

#define EXPORTED __attribute__((visibility("default")))

/* The directory and path that replace those of an `…at` call. */
struct resolved_path {
  int directory;
  const char *path;
  int opened;
  char name[NAME_MAX + 1];
};

/* Opens `path` within `root` with openat2. `beyond`: further flags of how to resolve it. Returns -1 with errno. */
int walk_open(int root, const char *path, unsigned long flags, unsigned long mode, unsigned long beyond);

/* Opens the directory that holds the last part of `path`, and copies that part to `name`. Returns -1 with errno. */
int walk_parent(int root, const char *path, unsigned long beyond, char name[NAME_MAX + 1]);

/* Each resolves a path and returns 0, or -1 with errno. A path that no sandbox could influence stays unchanged.
 * to_name ends at the last part, which may be a link, and leaves an empty path for a directory that ends in `.`; to_new is for
 * creating and removing, and follows no link at the
 * end; to_target follows a link at the end too and leaves an empty path, for AT_EMPTY_PATH. */
int resolve_to_name(struct resolved_path *at, int directory, const char *path);
int resolve_to_new(struct resolved_path *at, int directory, const char *path);
int resolve_to_target(struct resolved_path *at, int directory, const char *path);

/* Closes the directory that was opened for the path. Keeps errno and returns `result`. */
long resolve_end(struct resolved_path *at, long result);

/* Splits a path into the root of a sandbox and the rest. Returns 1 if it is below such a root (the caller closes
 * `*root` if `*opened` is set), 0 for any other path, -1 with errno. */
int walk_root(int directory, const char *path, int *root, int *opened, const char **rest);
