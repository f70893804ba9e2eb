/* File systems of cgroups in a dump. For each thread CRIU mounts each hierarchy, looks at the thread's group in it, and unmounts it: ten
 * mounts for a thread where cgroups are of version 1, more than a thousand for a browser, and the end of each is waited for. This file
 * keeps the mount of each hierarchy until CRIU ends, and answers with it again. */

#define _GNU_SOURCE
#include "criu-cgroups.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 32, LONGEST = 256 };

struct hierarchy {
  /* The kind of file system, and the options that name the hierarchy. */
  char name[LONGEST];
  int mount;
};

static struct hierarchy kept[MOST];
static int count;

/* What CRIU makes now; `context` is -1 while it makes none that could be kept. */
static struct {
  int context;
  char name[LONGEST];
  const struct hierarchy *found;
} making = { .context = -1 };

/* CRIU also asks with a kind of NULL, to learn whether the kernel has the call. */
static void begin(const char *kind, int context) {
  making.context = -1;
  if (context < 0 || (strcmp(kind, "cgroup") && strcmp(kind, "cgroup2"))) return;
  making.context = context;
  making.found = NULL;
  snprintf(making.name, sizeof making.name, "%s", kind);
}

static void add_option(const char *key, const char *value) {
  size_t length = strlen(making.name);
  int more = snprintf(making.name + length, sizeof making.name - length, ",%s=%s", key, value ? value : "");
  if (more < 0 || length + (size_t)more >= sizeof making.name) making.context = -1;
}

static const struct hierarchy *find(const char *name) {
  for (int i = 0; i < count; i++)
    if (!strcmp(kept[i].name, name)) return &kept[i];
  return NULL;
}

static void keep(int mount) {
  int again = count < MOST ? fcntl(mount, F_DUPFD_CLOEXEC, 0) : -1;
  if (again < 0) return;
  kept[count].mount = again;
  strcpy(kept[count++].name, making.name);
}

static int configure(unsigned long command, const char *key, const char *value, long *result) {
  switch (command) {
    case FSCONFIG_SET_FLAG: add_option(key, NULL); return 0;
    case FSCONFIG_SET_STRING: add_option(key, value); return 0;
    case FSCONFIG_CMD_CREATE:
      making.found = find(making.name);
      *result = 0;
      return making.found != NULL;
    default: making.context = -1; return 0;
  }
}

int keep_cgroups(long number, const long arguments[6], long *result, long (*real)(long, ...)) {
  if (number == SYS_fsopen) {
    *result = real(number, arguments[0], arguments[1]);
    begin((const char *)arguments[0], (int)*result);
    return 1;
  }
  if (making.context < 0 || (int)arguments[0] != making.context) return 0;
  if (number == SYS_fsconfig)
    return configure((unsigned long)arguments[1], (const char *)arguments[2], (const char *)arguments[3], result);
  if (number != SYS_fsmount) return 0;
  making.context = -1;
  *result = making.found ? fcntl(making.found->mount, F_DUPFD, 0) : real(number, arguments[0], arguments[1], arguments[2]);
  if (!making.found && *result >= 0) keep((int)*result);
  return 1;
}
