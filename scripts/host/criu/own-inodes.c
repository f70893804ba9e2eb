/* The mount is an overlay without an upper layer. */

#define _GNU_SOURCE
#include "own-inodes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LONGEST_OPTION = 255 };

/* An overlay without an upper layer needs a second lower one: an empty directory beside the first, so that both are on one
 * file system and inode numbers stay those of the directory. */
static int empty_beside(const char *directory, char *path) {
  const char *name = strrchr(directory, '/');
  if (*directory != '/' || !name[1]) return errno = EINVAL, -1;
  if (snprintf(path, PATH_MAX, "%.*s/.empty", (int)(name - directory), directory) >= PATH_MAX)
    return errno = ENAMETOOLONG, -1;
  return mkdir(path, 0555) && errno != EEXIST ? -1 : 0;
}

/* Paths as descriptors: an option may have 255 letters, and a colon in a path would end it. */
static int set_lower(int context, const char *first, const char *second) {
  char option[LONGEST_OPTION + 1];
  int one = open(first, O_PATH | O_DIRECTORY | O_CLOEXEC), two = open(second, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (one < 0 || two < 0) return -1;
  snprintf(option, sizeof option, "/proc/self/fd/%d:/proc/self/fd/%d", one, two);
  int result = (int)syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "lowerdir", option, 0);
  if (!result) result = (int)syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
  int why = errno;
  close(one);
  close(two);
  errno = why;
  return result;
}

int own_inodes(const char *directory) {
  char empty[PATH_MAX];
  if (empty_beside(directory, empty)) return -1;
  int context = (int)syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC), mount = -1;
  if (context < 0) return -1;
  if (!set_lower(context, directory, empty))
    mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
  int why = errno;
  close(context);
  errno = why;
  return mount;
}
