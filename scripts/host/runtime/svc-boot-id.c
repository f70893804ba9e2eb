/* Gives a container a new boot id, like that of a machine that has just started: programs compare it to
 * find out whether the machine was started again. runc calls this as a createContainer hook: in the container's mount
 * namespace, before pivot_root, with the future root as its directory. The file is in the container's own /dev, so a
 * memory image contains it, and a start without memory makes a new one. The image may have a link at /dev: no link is
 * followed. If a step fails, the container starts with the host's boot id. */

#define _GNU_SOURCE
#include "criu-walk.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME ".boot_id"

int main(void) {
  char id[64];
  int source = open("/proc/sys/kernel/random/uuid", O_RDONLY | O_CLOEXEC);
  ssize_t length = source < 0 ? -1 : read(source, id, sizeof id);
  int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  int devices = walk_open(root, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
  int place = walk_open(root, "proc/sys/kernel/random/boot_id", O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
  if (length <= 0 || devices < 0 || place < 0) return 0;
  unlinkat(devices, NAME, 0);
  int file = openat(devices, NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
  if (file < 0 || fchmod(file, 0444) || write(file, id, (size_t)length) != length) return 0;
  int tree = (int)syscall(SYS_open_tree, devices, NAME, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
  struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
  if (tree < 0 || syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &read_only, sizeof read_only)) return 0;
  syscall(SYS_move_mount, tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  return 0;
}
