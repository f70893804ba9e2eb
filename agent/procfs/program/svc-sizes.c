/* svc-sizes serve MOUNT USER VERSION
 * svc-sizes rebind MOUNT PROCESS:ID…
 *
 * Mounts a file system with files of /proc and /sys that say what the reader's container has, not what the machine has,
 * and serves it for as long as the mount is used. It is in the background when the command returns. The second form gives
 * running containers the files again when both processes were killed at once.
 *
 * Two processes hold the connection to the kernel: one answers, without any right and as a user of its own; the other one
 * waits for it to die and starts another. Either one is replaced when it is killed, and no mount is lost: the mounts in
 * running containers belong to the connection, not to a process. */

#define _GNU_SOURCE
#include "rebind.h"
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

volatile sig_atomic_t orphaned;

static void check(long result, const char *what) {
  if (result >= 0) return;
  fprintf(stderr, "svc-sizes: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int mount_at(const char *place) {
  char options[160];
  int connection = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  check(connection, "/dev/fuse");
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,max_read=131072", connection);
  check(mount("svc-sizes", place, "fuse.svc-sizes", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, options), place);
  return connection;
}

/* Best effort: only root with CAP_SYS_RESOURCE may lower this value. */
static void protect_from_memory_killer(void) {
  int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  ssize_t written = write(file, "-1000", 5);
  (void)written;
  close(file);
}

static void note_death(int signal) {
  (void)signal;
  orphaned = 1;
}

static void give_up_rights(uid_t user) {
  check(setgroups(0, NULL), "the groups");
  check(setresgid(user, user, user), "the group");
  check(setresuid(user, user, user), "the user");
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "new privileges");
  struct rlimit none = { 0, 0 };
  setrlimit(RLIMIT_CORE, &none);
}

/* Keeps one server running. A server whose keeper dies becomes a keeper. Ends the program when the mount is gone. */
__attribute__((noreturn)) static void run(int connection, struct shared *shared, const char *version) {
  for (;;) {
    pid_t keeper = getpid(), server = fork();
    int status;
    if (server == 0) {
      shared->starts++;
      orphaned = 0;
      prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
      if (getppid() != keeper) orphaned = 1;
      serve(connection, shared, version);
      if (!orphaned) exit(0);
    } else if (server > 0) {
      while (waitpid(server, &status, 0) < 0 && errno == EINTR) {
      }
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) exit(0);
      end_request(connection, shared);
      // A server that dies at every request must not take a whole processor.
      usleep(20000);
    } else {
      sleep(1);
    }
  }
}

static int serve_at(const char *place, uid_t user, const char *version) {
  int connection = mount_at(place);
  struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(shared == MAP_FAILED ? -1 : 0, "memory");
  protect_from_memory_killer();
  give_up_rights(user);
  struct sigaction on_death = { .sa_handler = note_death };
  sigaction(SIGUSR1, &on_death, NULL);
  pid_t background = fork();
  check(background, "a process");
  if (background) return 0;
  int nothing = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3; i++) dup2(nothing, i);
  check(setsid(), "a session");
  check(chdir("/"), "the directory");
  run(connection, shared, version);
}

int main(int count, char **arguments) {
  if (count == 5 && !strcmp(arguments[1], "serve"))
    return serve_at(arguments[2], (uid_t)strtoul(arguments[3], NULL, 10), arguments[4]);
  if (count >= 4 && !strcmp(arguments[1], "rebind")) {
    int failed = 0;
    for (int i = 3; i < count; i++) failed |= rebind(arguments[2], arguments[i]) != 0;
    return failed;
  }
  fprintf(stderr, "usage: svc-sizes serve MOUNT USER VERSION | svc-sizes rebind MOUNT PROCESS:ID...\n");
  return 2;
}
