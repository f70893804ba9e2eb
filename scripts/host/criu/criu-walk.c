/* Resolves a path inside the root of a sandbox. CRIU opens paths from the memory image while its root is still the
 * host's, and the sandbox may have replaced any directory in such a path by a link that leads to the host. openat2(2)
 * resolves links and `..` within the sandbox's root instead. */

#define _GNU_SOURCE
#include "criu-walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* CRIU makes the mounts of a restored sandbox in new directories with this prefix. */
#define YARD "/tmp/.criu.mntns."
/* runc mounts the root of a sandbox in this directory for CRIU. */
#define RUNC_ROOT "/criu-root/"
#define OF_PROCESS "/root/"

/* openat2 refuses flags that open ignores. */
#define KNOWN_FLAGS                                                                                                \
  (O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC | O_DSYNC | O_ASYNC | O_DIRECT | \
   0100000 /* large file */ | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_TMPFILE)
#define PATH_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* The kernel answers EAGAIN when a rename happened while it resolved `..`. */
enum { TRIES = 100 };

int walk_open(int root, const char *path, unsigned long flags, unsigned long mode, unsigned long beyond) {
  struct open_how how = { .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | beyond };
  how.flags = flags & ((flags & O_PATH) ? PATH_FLAGS : KNOWN_FLAGS);
  if (how.flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) how.mode = mode & 07777;
  long result = -1;
  for (int tries = 0; tries < TRIES; tries++) {
    result = syscall(SYS_openat2, root, path, &how, sizeof how);
    if (result >= 0 || errno != EAGAIN) break;
  }
  return (int)result;
}

int walk_parent(int root, const char *path, unsigned long beyond, char name[NAME_MAX + 1]) {
  char parent[PATH_MAX];
  size_t length = strlen(path);
  while (length > 0 && path[length - 1] == '/') length--;
  if (length >= sizeof parent) return errno = ENAMETOOLONG, -1;
  memcpy(parent, path, length);
  parent[length] = 0;
  char *slash = strrchr(parent, '/'), *last = slash ? slash + 1 : parent;
  if (strlen(last) > NAME_MAX) return errno = ENAMETOOLONG, -1;
  if (!*last || !strcmp(last, ".") || !strcmp(last, "..")) return errno = EINVAL, -1;
  strcpy(name, last);
  *last = 0;
  return walk_open(root, *parent ? parent : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0, beyond);
}

/* Returns where the root of the sandbox ends in an absolute path; NULL for a path that is not below such a root. */
static const char *end_of_root(const char *path) {
  const char *end = NULL;
  if (!strncmp(path, YARD, strlen(YARD))) {
    end = strchr(path + strlen(YARD), '/');
    if (end) end = strchr(end + 1, '/');
  } else if (!strncmp(path, "/proc/", 6)) {
    end = strchr(path + 6, '/');
    end = end && !strncmp(end, OF_PROCESS, strlen(OF_PROCESS)) ? end + strlen(OF_PROCESS) - 1 : NULL;
  } else {
    end = strstr(path, RUNC_ROOT);
    if (end) end += strlen(RUNC_ROOT) - 1;
  }
  while (end && *end == '/' && end[1] == '/') end++;
  return end && end[1] ? end : NULL;
}

/* Whether the directory is in a file system of the kernel (such as /proc), whose links CRIU follows on purpose. */
static int is_kernels(int directory) {
  struct statfs about;
  if (syscall(SYS_fstatfs, directory, &about)) return 1;
  switch ((unsigned long)about.f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
      return 1;
    default:
      return 0;
  }
}

int walk_root(int directory, const char *path, int *root, int *opened, const char **rest) {
  *opened = 0;
#ifdef FOLLOW_LINKS_TO_THE_HOST
  // For the tests of the confinement, see test/snapshots/restore-escape.test.ts.
  return 0;
#endif
  if (!path || !*path) return 0;
  if (*path != '/') {
    if (directory == AT_FDCWD || is_kernels(directory)) return 0;
    *root = directory;
    *rest = path;
    return 1;
  }
  const char *end = end_of_root(path);
  if (!end) return 0;
  char start[PATH_MAX];
  size_t length = (size_t)(end - path);
  if (length >= sizeof start) return errno = ENAMETOOLONG, -1;
  memcpy(start, path, length);
  start[length] = 0;
  *root = (int)syscall(SYS_openat, AT_FDCWD, start, O_PATH | O_CLOEXEC, 0);
  if (*root < 0) return -1;
  *opened = 1;
  *rest = end + 1;
  return 1;
}

/* Whether the last part of a path is no name: it ends in `.` or `..`. */
static int is_nameless(const char *path) {
  const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
  return !strcmp(last, ".") || !strcmp(last, "..");
}

/* `nameless`: the directory itself may be the goal, and then the path is empty. */
static int to_parent(struct resolved_path *at, int directory, const char *path, unsigned long beyond, int nameless) {
  int root, opened;
  const char *rest;
  at->directory = directory;
  at->path = path;
  at->opened = -1;
  int found = walk_root(directory, path, &root, &opened, &rest);
  if (found <= 0) return found;
  int whole = nameless && is_nameless(rest);
  at->opened = whole ? walk_open(root, rest, O_PATH | O_CLOEXEC, 0, beyond) : walk_parent(root, rest, beyond, at->name);
  at->directory = at->opened;
  at->path = whole ? "" : at->name;
  if (opened) {
    int reason = errno;
    close(root);
    errno = reason;
  }
  return at->opened < 0 ? -1 : 0;
}

int resolve_to_name(struct resolved_path *at, int directory, const char *path) {
  return to_parent(at, directory, path, 0, 1);
}

int resolve_to_new(struct resolved_path *at, int directory, const char *path) {
  return to_parent(at, directory, path, RESOLVE_NO_SYMLINKS, 0);
}

int resolve_to_target(struct resolved_path *at, int directory, const char *path) {
  int root, opened;
  const char *rest;
  at->directory = directory;
  at->path = path;
  at->opened = -1;
  int found = walk_root(directory, path, &root, &opened, &rest);
  if (found <= 0) return found;
  at->opened = walk_open(root, rest, O_PATH | O_CLOEXEC, 0, 0);
  at->directory = at->opened;
  at->path = "";
  if (opened) {
    int reason = errno;
    close(root);
    errno = reason;
  }
  return at->opened < 0 ? -1 : 0;
}

long resolve_end(struct resolved_path *at, long result) {
  int reason = errno;
  if (at->opened >= 0) close(at->opened);
  errno = reason;
  return result;
}
