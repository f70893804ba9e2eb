/* The calls of CRIU that take a path. A path that a sandbox could influence is resolved inside the sandbox's root, see
 * criu-walk.c; any other goes to the kernel unchanged. All calls are made by number, so libc wrappers do not recurse. */

#define _GNU_SOURCE
#include "criu-links.h"
#include "criu-sockets.h"
#include "criu-walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <unistd.h>

/* runc passes directories as its own descriptors, which belong to its mount namespace. CRIU may be in another namespace
 * and cannot mount below them. Returns the name of the same directory in that case, otherwise `path`. */
static const char *by_name(const char *path, char name[PATH_MAX]) {
  int pid, descriptor, end = 0;
  if (!path || sscanf(path, "/proc/%d/fd/%d%n", &pid, &descriptor, &end) != 2 || path[end]) return path;
  long length = syscall(SYS_readlinkat, AT_FDCWD, path, name, PATH_MAX - 1);
  if (length <= 0 || *name != '/') return path;
  name[length] = 0;
  struct stat given, named;
  if (syscall(SYS_newfstatat, AT_FDCWD, path, &given, 0) || !S_ISDIR(given.st_mode)) return path;
  if (syscall(SYS_newfstatat, AT_FDCWD, name, &named, AT_SYMLINK_NOFOLLOW)) return path;
  return given.st_dev == named.st_dev && given.st_ino == named.st_ino ? name : path;
}

/* The stand-in of a watched file that has no name any more, from svc-watch-paths (agent/snapshots/criu/watch-paths.c): no sandbox
 * can make a part of a path that is so long. */
#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define GONE "svc-gone-" X50 X50 X50 X50 X50 "/"

/* Returns whether the path is such a stand-in, with the device, as the kernel counts, and the inode that it stands for. */
static int is_gone(const char *path, unsigned *device, unsigned long *inode) {
  while (path && *path == '/') path++;
  return path && !strncmp(path, GONE, strlen(GONE)) && sscanf(path + strlen(GONE), "%x-%lx", device, inode) == 2;
}

/* What a restore watches in its place: a file that nobody else has, so that the watch ends at once. */
static int open_gone(void) { return (int)syscall(SYS_memfd_create, "gone", MFD_CLOEXEC); }

static int open_inside(int directory, const char *path, int flags, mode_t mode) {
  int root, opened;
  const char *rest;
  char name[PATH_MAX];
  unsigned device;
  unsigned long inode;
  if (is_gone(path, &device, &inode)) return open_gone();
  int found = walk_root(directory, path, &root, &opened, &rest);
  if (found < 0) return -1;
  if (!found) return (int)syscall(SYS_openat, directory, by_name(path, name), flags, mode);
  int file = walk_open(root, rest, (unsigned long)flags, mode, (flags & O_CREAT) ? RESOLVE_NO_SYMLINKS : 0);
  struct resolved_path at = { .opened = opened ? root : -1 };
  return (int)resolve_end(&at, file);
}

#define MODE_OF(flags, mode)                              \
  mode_t mode = 0;                                        \
  if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) { \
    va_list given;                                        \
    va_start(given, flags);                               \
    mode = va_arg(given, mode_t);                         \
    va_end(given);                                        \
  }

EXPORTED int open(const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return open_inside(AT_FDCWD, path, flags, mode);
}

EXPORTED int open64(const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return open_inside(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

EXPORTED int openat(int directory, const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return open_inside(directory, path, flags, mode);
}

EXPORTED int openat64(int directory, const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return open_inside(directory, path, flags | O_LARGEFILE, mode);
}

EXPORTED int creat(const char *path, mode_t mode) {
  return open_inside(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

EXPORTED int creat64(const char *path, mode_t mode) { return creat(path, mode); }

EXPORTED DIR *opendir(const char *path) {
  int file = open_inside(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  return file < 0 ? NULL : fdopendir(file);
}

/* Makes a call with `path` resolved. `kind` chooses what the last part of the path may be. */
#define ON(kind, directory, path, call)                \
  struct resolved_path at;                             \
  if (resolve_##kind(&at, directory, path)) return -1; \
  return (int)resolve_end(&at, call)

EXPORTED int unlinkat(int directory, const char *path, int flags) {
  if (links_stays(path)) return 0;
  ON(to_new, directory, path, syscall(SYS_unlinkat, at.directory, at.path, flags));
}

EXPORTED int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

EXPORTED int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

EXPORTED int remove(const char *path) {
  int result = unlink(path);
  return result && errno == EISDIR ? rmdir(path) : result;
}

EXPORTED int mkdirat(int directory, const char *path, mode_t mode) {
  ON(to_new, directory, path, syscall(SYS_mkdirat, at.directory, at.path, mode));
}

EXPORTED int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

EXPORTED int mknodat(int directory, const char *path, mode_t mode, dev_t device) {
  ON(to_new, directory, path, syscall(SYS_mknodat, at.directory, at.path, mode, (unsigned)device));
}

EXPORTED int mknod(const char *path, mode_t mode, dev_t device) { return mknodat(AT_FDCWD, path, mode, device); }

EXPORTED int symlinkat(const char *target, int directory, const char *path) {
  ON(to_new, directory, path, syscall(SYS_symlinkat, target, at.directory, at.path));
}

EXPORTED int symlink(const char *target, const char *path) { return symlinkat(target, AT_FDCWD, path); }

/* Both paths are resolved by name. With AT_EMPTY_PATH the source is a descriptor and stays unchanged. */
static int two_names(int number, int from, const char *old, int to, const char *new, int flags) {
  struct resolved_path source, goal;
  if (resolve_to_new(&source, from, old)) return -1;
  if (resolve_to_new(&goal, to, new)) return (int)resolve_end(&source, -1);
  long result = syscall(number, source.directory, source.path, goal.directory, goal.path, flags);
  return (int)resolve_end(&source, resolve_end(&goal, result));
}

EXPORTED int linkat(int from, const char *old, int to, const char *new, int flags) {
  if (links_note(new, flags)) return -1;
  return two_names(SYS_linkat, from, old, to, new, flags);
}

EXPORTED int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

EXPORTED int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
  return two_names(SYS_renameat2, from, old, to, new, (int)flags);
}

EXPORTED int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }

EXPORTED int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

/* Not every kernel can change a mode by an O_PATH descriptor, so a link at the end of the path is refused. */
EXPORTED int fchmodat(int directory, const char *path, mode_t mode, int flags) {
  struct resolved_path at;
  if (resolve_to_new(&at, directory, path)) return -1;
  struct stat about;
  long result;
  if (at.opened < 0) result = syscall(SYS_fchmodat, directory, path, mode, flags);
  else if (syscall(SYS_newfstatat, at.directory, at.path, &about, AT_SYMLINK_NOFOLLOW)) result = -1;
  else if (S_ISLNK(about.st_mode)) errno = ELOOP, result = -1;
  else result = syscall(SYS_fchmodat, at.directory, at.path, mode);
  return (int)resolve_end(&at, result);
}

EXPORTED int chmod(const char *path, mode_t mode) { return fchmodat(AT_FDCWD, path, mode, 0); }

EXPORTED int fchownat(int directory, const char *path, uid_t user, gid_t group, int flags) {
  if (flags & AT_SYMLINK_NOFOLLOW) {
    ON(to_new, directory, path, syscall(SYS_fchownat, at.directory, at.path, user, group, flags));
  }
  ON(to_target, directory, path,
     syscall(SYS_fchownat, at.directory, at.path, user, group, at.opened < 0 ? flags : AT_EMPTY_PATH));
}

EXPORTED int chown(const char *path, uid_t user, gid_t group) { return fchownat(AT_FDCWD, path, user, group, 0); }

EXPORTED int lchown(const char *path, uid_t user, gid_t group) {
  return fchownat(AT_FDCWD, path, user, group, AT_SYMLINK_NOFOLLOW);
}

EXPORTED int lutimes(const char *path, const struct timeval times[2]) {
  struct timespec exact[2];
  for (int i = 0; times && i < 2; i++) exact[i] = (struct timespec){ times[i].tv_sec, times[i].tv_usec * 1000 };
  ON(to_new, AT_FDCWD, path,
     syscall(SYS_utimensat, at.directory, at.path, times ? exact : NULL, AT_SYMLINK_NOFOLLOW));
}

static int status_of(int directory, const char *path, struct stat *about, int flags) {
  unsigned device;
  unsigned long inode;
  if (is_gone(path, &device, &inode)) {
    *about = (struct stat){ .st_dev = makedev(device >> 20, device & 0xfffff), .st_ino = inode, .st_mode = S_IFREG };
    return 0;
  }
  if (flags & AT_SYMLINK_NOFOLLOW) {
    ON(to_name, directory, path,
       syscall(SYS_newfstatat, at.directory, at.path, about, at.opened < 0 || *at.path ? flags : flags | AT_EMPTY_PATH));
  }
  ON(to_target, directory, path,
     syscall(SYS_newfstatat, at.directory, at.path, about, at.opened < 0 ? flags : flags | AT_EMPTY_PATH));
}

EXPORTED int fstatat(int directory, const char *path, struct stat *about, int flags) {
  return status_of(directory, path, about, flags);
}

EXPORTED int fstatat64(int directory, const char *path, struct stat64 *about, int flags) {
  return status_of(directory, path, (struct stat *)about, flags);
}

EXPORTED int stat(const char *path, struct stat *about) { return status_of(AT_FDCWD, path, about, 0); }

EXPORTED int stat64(const char *path, struct stat64 *about) {
  return status_of(AT_FDCWD, path, (struct stat *)about, 0);
}

EXPORTED int lstat(const char *path, struct stat *about) {
  return status_of(AT_FDCWD, path, about, AT_SYMLINK_NOFOLLOW);
}

EXPORTED int lstat64(const char *path, struct stat64 *about) { return lstat(path, (struct stat *)about); }

EXPORTED int statfs(const char *path, struct statfs *about) {
  ON(to_target, AT_FDCWD, path,
     at.opened < 0 ? syscall(SYS_statfs, path, about) : syscall(SYS_fstatfs, at.opened, about));
}

EXPORTED int statfs64(const char *path, struct statfs64 *about) { return statfs(path, (struct statfs *)about); }

EXPORTED int faccessat(int directory, const char *path, int mode, int flags) {
  ON(to_target, directory, path,
     at.opened < 0 && !flags
       ? syscall(SYS_faccessat, directory, path, mode)
       : syscall(SYS_faccessat2, at.directory, at.path, mode, at.opened < 0 ? flags : flags | AT_EMPTY_PATH));
}

EXPORTED int access(const char *path, int mode) { return faccessat(AT_FDCWD, path, mode, 0); }

EXPORTED ssize_t readlinkat(int directory, const char *path, char *text, size_t size) {
  struct resolved_path at;
  if (resolve_to_name(&at, directory, path)) return -1;
  ssize_t length = resolve_end(&at, syscall(SYS_readlinkat, at.directory, at.path, text, size));
  return sockets_link(path, text, size, length);
}

EXPORTED ssize_t readlink(const char *path, char *text, size_t size) { return readlinkat(AT_FDCWD, path, text, size); }

EXPORTED int chdir(const char *path) {
  char name[PATH_MAX];
  struct resolved_path at;
  if (resolve_to_target(&at, AT_FDCWD, path)) return -1;
  long result = at.opened < 0 ? syscall(SYS_chdir, by_name(path, name)) : syscall(SYS_fchdir, at.opened);
  if (!result) links_work_here();
  return (int)resolve_end(&at, result);
}

/* Passes the file to the kernel as /proc/self/fd/N of this process. */
#define BY_DESCRIPTOR(name, at, path)                                 \
  char name##_[32];                                                   \
  snprintf(name##_, sizeof name##_, "/proc/self/fd/%d", (at).opened); \
  const char *name = (at).opened < 0 ? (path) : name##_

EXPORTED int inotify_add_watch(int inotify, const char *path, uint32_t mask) {
  struct resolved_path at;
  if (resolve_to_target(&at, AT_FDCWD, path)) return -1;
  BY_DESCRIPTOR(there, at, path);
  return (int)resolve_end(&at, syscall(SYS_inotify_add_watch, inotify, there, mask));
}

EXPORTED int fanotify_mark(int fanotify, unsigned flags, uint64_t mask, int directory, const char *path) {
  struct resolved_path at;
  if (resolve_to_target(&at, directory, path)) return -1;
  BY_DESCRIPTOR(there, at, path);
  return (int)resolve_end(&at, syscall(SYS_fanotify_mark, fanotify, flags, mask, directory, there));
}
