#define _GNU_SOURCE
#include "rebind.h"
#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* The same places as in scripts/host/runtime/svc-runc. */
static const struct {
  const char *file, *directory, *name;
} PLACES[] = {
  { "meminfo", "/proc", "meminfo" },
  { "cpuinfo", "/proc", "cpuinfo" },
  { "stat", "/proc", "stat" },
  { "uptime", "/proc", "uptime" },
  { "loadavg", "/proc", "loadavg" },
  { "swaps", "/proc", "swaps" },
  { "online", "/sys/devices/system/cpu", "online" },
};
enum { NUMBER = sizeof PLACES / sizeof PLACES[0] };

/* Only a mount whose server is gone is replaced: a container without these mounts stays without them. */
static int replace(int tree, int place) {
  struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
  int directory = (int)syscall(SYS_openat2, AT_FDCWD, PLACES[place].directory, &how, sizeof how);
  struct statfs about;
  if (directory < 0 || fstatfs(directory, &about)) return -1;
  if (about.f_type != PROC_SUPER_MAGIC && about.f_type != SYSFS_MAGIC) return errno = EXDEV, -1;
  if (fchdir(directory)) return -1;
  close(directory);
  if (!statfs(PLACES[place].name, &about) || (errno != ENOTCONN && errno != ECONNABORTED)) return 0;
  if (umount2(PLACES[place].name, MNT_DETACH | UMOUNT_NOFOLLOW)) return -1;
  return (int)syscall(SYS_move_mount, tree, "", AT_FDCWD, PLACES[place].name, MOVE_MOUNT_F_EMPTY_PATH);
}

static int inside(const char *mount, const char *container) {
  char path[4096], text[8192];
  long process = strtol(container, NULL, 10);
  const char *id = strchr(container, ':');
  snprintf(path, sizeof path, "/proc/%ld/ns/mnt", process);
  int space = open(path, O_RDONLY | O_CLOEXEC), trees[NUMBER];
  snprintf(path, sizeof path, "/proc/%ld/cgroup", process);
  // After the namespace is open: a number of a process is used again.
  if (space < 0 || !id || strlen(id + 1) != ID_LENGTH || read_text(path, text, sizeof text) <= 0 || !strstr(text, id + 1))
    return errno = ESRCH, -1;
  for (int i = 0; i < NUMBER; i++) {
    snprintf(path, sizeof path, "%s/%s/%s", mount, id + 1, PLACES[i].file);
    trees[i] = (int)syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (trees[i] < 0) return -1;
  }
  if (setns(space, CLONE_NEWNS)) return -1;
  for (int i = 0; i < NUMBER; i++)
    if (replace(trees[i], i)) return -1;
  return 0;
}

int rebind(const char *mount, const char *container) {
  int status = 1;
  pid_t child = fork();
  if (child == 0) {
    if (!inside(mount, container)) _exit(0);
    fprintf(stderr, "svc-sizes: container %s: %s\n", container, strerror(errno));
    _exit(1);
  }
  if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}
