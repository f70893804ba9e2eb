/* Builds a mount namespace whose root holds only the added paths, see svc-confine.c. */

#define _GNU_SOURCE
#include "confine-tree.h"
#include "own-inodes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* Tries of a device are a millisecond apart. runc needs a few. */
enum { MOST = 256, DEVICE_TRIES = 3000, TAKE_TRIES = 100 };
static struct {
  struct seen list[MOST];
  int count;
} all;

void give_up(const char *what) {
  int why = errno;
  fprintf(stderr, "svc-confine: %s: %s\n", what, strerror(why));
  // In a restore the standard error is the sandbox's: svc-runc reads the words here.
  const char *log = getenv("SVC_CONFINE_LOG");
  int file = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
  if (file >= 0) dprintf(file, "svc-confine: %s: %s\n", what, strerror(why));
  exit(1);
}

void see(const char *path, int writable, int needed) {
  struct stat about;
  if (lstat(path, &about)) {
    if (needed || errno != ENOENT) give_up(path);
    return;
  }
  for (int i = 0; i < all.count; i++) {
    if (strcmp(all.list[i].path, path)) continue;
    all.list[i].writable |= writable;
    all.list[i].needed |= needed;
    return;
  }
  if (all.count == MOST) errno = E2BIG, give_up(path);
  struct seen *one = &all.list[all.count++];
  *one = (struct seen){ .path = strdup(path), .writable = writable, .needed = needed };
}

void see_apart(const char *path) {
  see(path, 0, 1);
  for (int i = 0; i < all.count; i++)
    if (!strcmp(all.list[i].path, path)) all.list[i].apart = 1;
}

/* Makes a directory or a file under the new root. Links in existing mounts cannot lead the call out of that root. */
static int make_place(int root, const char *path, mode_t kind) {
  char parent[PATH_MAX];
  struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS };
  if (strlen(path) >= sizeof parent) errno = ENAMETOOLONG, give_up(path);
  strcpy(parent, path);
  int there = dup(root);
  for (char *name = strtok(parent, "/"); name; name = strtok(NULL, "/")) {
    int last = name + strlen(name) == parent + strlen(path);
    if (last && !S_ISDIR(kind)) {
      int made = openat(there, name, O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
      if (made >= 0) close(made);
    } else if (mkdirat(there, name, 0755) && errno != EEXIST && errno != EROFS) {
      give_up(path);
    }
    int next = (int)syscall(SYS_openat2, there, name, &how, sizeof how);
    if (next < 0) give_up(path);
    close(there);
    there = next;
  }
  return there;
}

static void take(struct seen *one) {
  if (one->apart) {
    one->tree = own_inodes(one->path);
    if (one->tree < 0) give_up(one->path);
    return;
  }
  one->tree = (int)syscall(SYS_open_tree, AT_FDCWD, one->path,
                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
  // It may have gone since it was seen.
  if (one->tree < 0 && (one->needed || errno != ENOENT)) give_up(one->path);
  if (one->tree < 0 || one->writable) return;
  struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
  if (syscall(SYS_mount_setattr, one->tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &read_only, sizeof read_only))
    give_up(one->path);
}

static void place(int root, struct seen *one) {
  struct stat about;
  if (one->tree < 0) return;
  if (fstat(one->tree, &about)) give_up(one->path);
  if (S_ISLNK(about.st_mode)) {
    char target[PATH_MAX] = "";
    if (readlink(one->path, target, sizeof target - 1) < 0 || symlinkat(target, root, one->path + 1)) give_up(one->path);
    return;
  }
  int there = make_place(root, one->path, about.st_mode);
  int flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
  // The kernel does not place a file that was replaced since it was taken, as an agent replaces CRIU's note: take the new one.
  for (int left = TAKE_TRIES; one->tree >= 0 && syscall(SYS_move_mount, one->tree, "", there, "", flags); left--) {
    if (errno != ENOENT || left == 0) give_up(one->path);
    close(one->tree);
    take(one);
  }
  close(there);
}

/* runc writes the rules for devices of the cgroup, in which this runs, at the same time: first one that forbids all. */
static int make_device(int directory) {
  const struct timespec pause = { .tv_nsec = 1000000 };
  for (int left = DEVICE_TRIES; mknodat(directory, "null", S_IFCHR | 0666, makedev(1, 3)); left--) {
    if (errno != EPERM || left == 0) return -1;
    nanosleep(&pause, NULL);
    errno = EPERM;
  }
  return 0;
}

/* CRIU mounts its /dev/null over the masked files of a restored sandbox, whose root may change the mode of that inode and
 * watch it: not the machine's. */
static void make_null(int root) {
  int devices = make_place(root, "/dev", S_IFDIR);
  if (make_device(devices) || fchmodat(devices, "null", 0666, 0)) give_up("/dev/null");
  close(devices);
}

/* Sorts a directory before its entries. */
static int by_path(const void *a, const void *b) {
  return strcmp(((const struct seen *)a)->path, ((const struct seen *)b)->path);
}

void become_confined(void) {
  if (unshare(CLONE_NEWNS)) give_up("a mount namespace");
  // Not private: mounts that the machine propagates to the sandbox's root must reach a restored sandbox too.
  if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL)) give_up("the propagation of mounts");
  qsort(all.list, (size_t)all.count, sizeof all.list[0], by_path);
  for (int i = 0; i < all.count; i++) take(&all.list[i]);
  if (mount("svc-confine", "/tmp", "tmpfs", 0, "size=4m,mode=755") || chdir("/tmp")) give_up("/tmp");
  int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) give_up("the new root");
  if (mkdir("tmp", 01777) || chmod("tmp", 01777)) give_up("/tmp");
  for (int i = 0; i < all.count; i++) {
    place(root, &all.list[i]);
    if (all.list[i].tree >= 0) close(all.list[i].tree);
  }
  make_null(root);
  if (syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/")) give_up("the new root");
  close(root);
}
