/* The mounts that CRIU makes: source and target are resolved like any other path, see criu-paths.c. */

#define _GNU_SOURCE
#include "criu-mounts.h"
#include "criu-walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#define TREE_FLAGS (OPEN_TREE_CLONE | O_CLOEXEC | AT_RECURSIVE)
#define FROM_EMPTY_PATH 0x04UL
#define TO_EMPTY_PATH 0x40UL

EXPORTED int mount(const char *source, const char *target, const char *kind, unsigned long flags, const void *data) {
  struct resolved_path from = { .opened = -1 }, to;
  char from_name[32], to_name[32];
  // Only then is the source a path; otherwise it is the name of a file system or a device.
  if ((flags & (MS_BIND | MS_MOVE)) && resolve_to_target(&from, AT_FDCWD, source)) return -1;
  if (resolve_to_target(&to, AT_FDCWD, target)) return (int)resolve_end(&from, -1);
  snprintf(from_name, sizeof from_name, "/proc/self/fd/%d", from.opened);
  snprintf(to_name, sizeof to_name, "/proc/self/fd/%d", to.opened);
  long result = syscall(SYS_mount, from.opened < 0 ? source : from_name, to.opened < 0 ? target : to_name, kind, flags,
                        data);
  return (int)resolve_end(&from, resolve_end(&to, result));
}

EXPORTED int umount2(const char *path, int flags) {
  int root, opened;
  const char *rest;
  int found = walk_root(AT_FDCWD, path, &root, &opened, &rest);
  if (found < 0) return -1;
  if (!found) return (int)syscall(SYS_umount2, path, flags);
  struct resolved_path at = { .opened = root };
  char name[32];
  int there = walk_open(root, rest, O_PATH | O_CLOEXEC, 0, 0);
  if (there < 0) return (int)resolve_end(&at, -1);
  snprintf(name, sizeof name, "/proc/self/fd/%d", there);
  // The descriptor holds the mount: without MNT_DETACH it would be busy.
  long result = syscall(SYS_umount2, name, flags | MNT_DETACH);
  resolve_end(&(struct resolved_path){ .opened = there }, 0);
  return (int)resolve_end(&at, result);
}

EXPORTED int umount(const char *path) { return umount2(path, 0); }

int move_inside(long number, long arguments[6], long *result, long (*real)(long, ...)) {
  struct resolved_path from, to = { .opened = -1 };
  if (number == SYS_open_tree) {
    if (resolve_to_target(&from, (int)arguments[0], (const char *)arguments[1])) return *result = -1, 1;
    if (from.opened < 0) return 0;
    *result = real(number, (long)from.opened, "", (arguments[2] & TREE_FLAGS) | AT_EMPTY_PATH);
    *result = resolve_end(&from, *result);
    return 1;
  }
  if (number != SYS_move_mount) return 0;
  unsigned long flags = (unsigned long)arguments[4];
  if (resolve_to_target(&from, (int)arguments[0], (const char *)arguments[1])) return *result = -1, 1;
  if (resolve_to_target(&to, (int)arguments[2], (const char *)arguments[3])) return *result = resolve_end(&from, -1), 1;
  if (from.opened >= 0) flags |= FROM_EMPTY_PATH;
  if (to.opened >= 0) flags |= TO_EMPTY_PATH;
  *result = real(number, (long)from.directory, from.path, (long)to.directory, to.path, flags);
  *result = resolve_end(&from, resolve_end(&to, *result));
  return 1;
}
