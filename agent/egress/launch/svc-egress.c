/*
 * svc-egress ADDRESS PORT DNS_PORT USER PROGRAM [ARGUMENT...]
 *
 * Makes what only root can make, gives up being root, and becomes PROGRAM. It makes three sockets: TCP at ADDRESS:PORT
 * that takes connections to any address (IP_TRANSPARENT), UDP and TCP at ADDRESS:DNS_PORT. PROGRAM finds their numbers
 * in SVC_EGRESS_SOCKETS, as "4,5,6". It runs as the user and group USER (a number; it needs no entry in /etc/passwd), without
 * capabilities (none can be regained), no_new_privs and the seccomp filter of filter.c. A failed step ends this
 * program before PROGRAM begins, with a message for the agent's log.
 */

#define _GNU_SOURCE
#include "filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LAST_CAPABILITY = 63 };

static const char USAGE[] = "usage: svc-egress ADDRESS PORT DNS_PORT USER PROGRAM [ARGUMENT...]\n"
                            "ADDRESS is an IPv4 address, a port is 1 to 65535, USER is a number and not 0\n";

/* Prints what failed, the reason in errno and, if `help` is given, the way out; then exits. */
static void fail(const char *what, const char *help) {
  fprintf(stderr, "svc-egress: %s: %s%s%s\n", what, strerror(errno), help ? "; " : "", help ? help : "");
  exit(1);
}

static unsigned long number(const char *text, unsigned long most) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || errno || value == 0 || value > most) {
    fputs(USAGE, stderr);
    exit(2);
  }
  return value;
}

/* The socket does not listen yet: until PROGRAM does, the kernel refuses connections, so none waits for a failed start. */
static int bound(int type, struct in_addr address, unsigned long port, int transparent) {
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = address, .sin_port = htons((unsigned short)port) };
  const int on = 1;
  int fd = socket(AF_INET, type, 0);
  if (fd < 0) fail("socket", NULL);
  if (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on)) fail("SO_REUSEADDR", NULL);
  if (transparent && setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof on)) fail("IP_TRANSPARENT", NULL);
  if (bind(fd, (struct sockaddr *)&at, sizeof at)) {
    fprintf(stderr, "svc-egress: %s port %lu\n", type == SOCK_STREAM ? "TCP" : "UDP", port);
    fail("bind", "another program may have this port at the gateway");
  }
  return fd;
}

static void set_limits(void) {
  /* No core file, because memory holds the authority's key, passwords of proxies and values of secrets. */
  const struct rlimit none = { 0, 0 };
  if (setrlimit(RLIMIT_CORE, &none)) fail("RLIMIT_CORE", NULL);
  /* A program that receives core files through a pipe is started despite the limit: it gets no memory. */
  int filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
  if (filter < 0) return;
  if (write(filter, "0", 1) != 1) fail("coredump_filter", NULL);
  close(filter);
}

static void become(unsigned long user) {
  /* Before the change of user, which takes CAP_SETPCAP away. */
  for (int one = 0; one <= LAST_CAPABILITY; one++)
    if (prctl(PR_CAPBSET_READ, one, 0, 0, 0) == 1 && prctl(PR_CAPBSET_DROP, one, 0, 0, 0))
      fail("dropping a capability", "the agent must run as root with CAP_SETPCAP");
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)) fail("ambient capabilities", NULL);
  const char *help = "set SVC_EGRESS_UID to a user number that this machine can use";
  gid_t group = (gid_t)user;
  if (setgroups(0, NULL)) fail("setgroups", "the agent must run as root with CAP_SETGID");
  if (setresgid(group, group, group)) fail("setresgid", help);
  if (setresuid((uid_t)user, (uid_t)user, (uid_t)user)) fail("setresuid", help);

  struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
  struct __user_cap_data_struct nothing[2];
  memset(nothing, 0, sizeof nothing);
  if (syscall(SYS_capset, &header, nothing)) fail("capset", NULL);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("no_new_privs", NULL);
}

int main(int count, char **arguments) {
  struct in_addr address;
  if (count < 6 || inet_pton(AF_INET, arguments[1], &address) != 1) {
    fputs(USAGE, stderr);
    return 2;
  }
  unsigned long port = number(arguments[2], 65535), dns_port = number(arguments[3], 65535);
  unsigned long user = number(arguments[4], 0xfffffffe);
  char **command = arguments + 5;

  int redirected = bound(SOCK_STREAM, address, port, 1);
  int udp = bound(SOCK_DGRAM, address, dns_port, 0), tcp = bound(SOCK_STREAM, address, dns_port, 0);
  char sockets[48];
  snprintf(sockets, sizeof sockets, "%d,%d,%d", redirected, udp, tcp);
  if (setenv("SVC_EGRESS_SOCKETS", sockets, 1)) fail("setenv", NULL);

  /* Opened as root, because the user may not be allowed to enter its directory. */
  int program = open(command[0], O_PATH | O_CLOEXEC);
  if (program < 0) fail(command[0], NULL);
  set_limits();
  umask(077);
  if (chdir("/")) fail("chdir", NULL);
  become(user);

  /* The filter allows execveat with exactly these arguments and no other exec. */
  static const char here[] = "";
  if (filter_calls(program, here)) fail("seccomp", "the kernel must have CONFIG_SECCOMP_FILTER");
  syscall(SYS_execveat, program, here, command, environ, AT_EMPTY_PATH);
  fail(command[0], "make the file executable for all users");
}
