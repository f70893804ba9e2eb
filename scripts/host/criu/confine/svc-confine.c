/* svc-confine [NAME=VALUE] PROGRAM ARGUMENT…: starts CRIU in a mount namespace where it can see and write only what
 * this one dump, restore or page server needs: CRIU itself, its images and its work directory, processes, cgroups,
 * runc's state of the container, and the container's root. If a bug in CRIU lets a path from a memory image lead out of
 * the sandbox, the path ends in an empty tmpfs. The exception is a path through the links of /proc to the root,
 * directory and files of a host process: CRIU needs /proc, and only criu-preload.c stops such a path. Capabilities that
 * change the whole machine are dropped, and the OOM killer does not choose CRIU.
 *
 * CRIU keeps the machine's network and process namespaces, because it works on processes of the machine.
 *
 * A CRIU that runc asks for its version, and for nothing else, reads no image and needs no such namespace. */

#define _GNU_SOURCE
#include "confine-runc.h"
#include "confine-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* CRIU packs a tmpfs with tar and gzip, through a shell. /run/criu.kdat is its cache of kernel features. */
static const char *const READ[] = {
  "/opt/svc/criu", "/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib64", "/bin", "/usr/bin/tar",
  "/usr/bin/gzip", "/usr/bin/sh", "/usr/bin/dash", "/usr/bin/bash", "/run/criu.kdat", "/sys",
};
static const char *const WRITTEN[] = {
  "/proc", "/sys/fs/cgroup", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx",
  "/dev/pts", "/dev/net/tun",
};

static const int DROPPED[] = {
  CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT, CAP_SYSLOG, CAP_MAC_ADMIN, CAP_MAC_OVERRIDE,
  CAP_SYS_PACCT, CAP_WAKE_ALARM, CAP_BLOCK_SUSPEND, CAP_AUDIT_CONTROL, CAP_AUDIT_READ,
};

static void drop_capabilities(void) {
  struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
  struct __user_cap_data_struct sets[2];
  if (syscall(SYS_capget, &header, sets)) give_up("the capabilities");
  for (size_t i = 0; i < sizeof DROPPED / sizeof DROPPED[0]; i++) {
    int one = DROPPED[i];
    if (prctl(PR_CAPBSET_READ, one, 0, 0, 0) == 1 && prctl(PR_CAPBSET_DROP, one, 0, 0, 0)) give_up("a capability");
    unsigned keep = ~(1U << (one % 32));
    sets[one / 32].effective &= keep;
    sets[one / 32].permitted &= keep;
    sets[one / 32].inheritable &= keep;
  }
  if (syscall(SYS_capset, &header, sets)) give_up("the capabilities");
}

/* A CRIU that is killed half-way may cost the sandbox. Only root with CAP_SYS_RESOURCE may lower this value. Restored
 * processes do not inherit it, see criu-preload.c. */
static void protect_from_memory_killer(void) {
  int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  // EACCES without the capability: CRIU keeps the value of its parent then.
  ssize_t written = write(file, "-1000", 5);
  (void)written;
  close(file);
}

/* The value after `name`, or NULL. */
static const char *argument(char **arguments, const char *name) {
  for (; *arguments; arguments++)
    if (!strcmp(*arguments, name)) return arguments[1];
  return NULL;
}

/* A request of runc is a message of CRIU's protocol (criu_req in its rpc.proto): the type VERSION, and nothing that keeps the
 * socket open for another request. A request that has not come yet counts as another one. */
static int asks_for_version_alone(const char *socket) {
  static const char VERSION[] = { 0x08, 0x0a };
  char begun[sizeof VERSION + 1];
  return socket && recv(atoi(socket), begun, sizeof begun, MSG_PEEK | MSG_DONTWAIT) == sizeof VERSION &&
         !memcmp(begun, VERSION, sizeof VERSION);
}

static void confine(char **arguments) {
  const char *images = argument(arguments, "--images-dir"), *work = argument(arguments, "--work-dir");
  for (size_t i = 0; i < sizeof READ / sizeof READ[0]; i++) see(READ[i], 0, 0);
  for (size_t i = 0; i < sizeof WRITTEN / sizeof WRITTEN[0]; i++) see(WRITTEN[i], 1, 0);
  char program[PATH_MAX];
  if (!realpath(arguments[1], program)) give_up(arguments[1]);
  see(program, 0, 1);
  if (images && work) {
    see(images, 0, 1);
    see(work, 1, 1);
  } else {
    see_what_runc_uses();
  }
  protect_from_memory_killer();
  become_confined();
}

int main(int count, char **arguments) {
  if (count < 2) errno = EINVAL, give_up("the program");
  if (strchr(arguments[1], '=') && count > 2) putenv(*++arguments);
  if (!asks_for_version_alone(argument(arguments, "swrk"))) confine(arguments);
  drop_capabilities();
  execv(arguments[1], arguments + 1);
  give_up(arguments[1]);
}
