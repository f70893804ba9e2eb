/* svc-mounts [RUNTIME PLACE]: the mounts of a new container that runc cannot make. runc calls this as a createContainer
 * hook: in the container's mount namespace, before pivot_root, with the future root as its directory. The image may have
 * links in the places of mounts: none leads out of that root.
 *
 * A boot id like that of a machine that has just started: programs compare it to find out whether the machine was started
 * again. The file is in the container's own /dev, so a memory image contains it, and a start without memory makes a new
 * one. If a step fails, the container starts with the host's boot id.
 *
 * With RUNTIME, a directory of the host that runc has mounted at PLACE in every container: inodes of its own for this
 * container. If a step fails, the container does not start. For a restore svc-confine does the same. */

#define _GNU_SOURCE
#include "criu-walk.h"
#include "own-inodes.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BOOT_ID ".boot_id"

static int move_to(int mount, int place) {
  return (int)syscall(SYS_move_mount, mount, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

static void give_boot_id(int root) {
  char id[64];
  int source = open("/proc/sys/kernel/random/uuid", O_RDONLY | O_CLOEXEC);
  ssize_t length = source < 0 ? -1 : read(source, id, sizeof id);
  int devices = walk_open(root, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
  int place = walk_open(root, "proc/sys/kernel/random/boot_id", O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
  if (length <= 0 || devices < 0 || place < 0) return;
  unlinkat(devices, BOOT_ID, 0);
  int file = openat(devices, BOOT_ID, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
  if (file < 0 || fchmod(file, 0444) || write(file, id, (size_t)length) != length) return;
  int tree = (int)syscall(SYS_open_tree, devices, BOOT_ID, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
  struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
  if (tree < 0 || syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &read_only, sizeof read_only)) return;
  move_to(tree, place);
}

/* Takes runc's mount away instead of covering it: two mounts at one place would be two mounts in a memory image. */
static int give_inodes(int root, const char *runtime, const char *place) {
  char name[32];
  int mount = own_inodes(runtime), shared = walk_open(root, place, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, 0);
  if (mount < 0 || shared < 0) return -1;
  snprintf(name, sizeof name, "/proc/self/fd/%d", shared);
  if (umount2(name, MNT_DETACH)) return -1;
  int under = walk_open(root, place, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, 0);
  return under < 0 ? -1 : move_to(mount, under);
}

int main(int count, char **arguments) {
  int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return perror("svc-mounts: the container's root"), 1;
  give_boot_id(root);
  if (count == 3 && give_inodes(root, arguments[1], arguments[2])) return perror("svc-mounts: the envd runtime"), 1;
  return 0;
}
