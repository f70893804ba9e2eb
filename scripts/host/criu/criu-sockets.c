/* Bound Unix sockets with a relative name whose file was renamed. CRIU opens the file of a socket (SIOCUNIXFILE) and expects that its
 * path ends with the bound name, to learn the directory of the bind; otherwise it refuses the dump. This file answers with the bound
 * name in the directory of the file. The agent then writes the real name into the image, see agent/snapshots/criu/socket-names.c. */

#define _GNU_SOURCE
#include "criu-sockets.h"
#include "criu-walk.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* See include/uapi/linux/un.h. */
enum { OPEN_FILE = 0x89e0 };
#define DELETED " (deleted)"

/* The link of the file that was opened last, and the relative name of its socket; both empty if there is none. */
static char link_of_file[64];
static union {
  struct sockaddr_un address;
  char room[sizeof(struct sockaddr_un) + 1];
} bound;

EXPORTED int ioctl(int file, unsigned long request, ...) {
  va_list given;
  va_start(given, request);
  void *argument = va_arg(given, void *);
  va_end(given);
  int result = (int)syscall(SYS_ioctl, file, request, argument), reason = errno;
  if (request != OPEN_FILE) return result;
  *link_of_file = 0;
  memset(&bound, 0, sizeof bound);
  socklen_t size = sizeof bound.address;
  if (result >= 0 && !getsockname(file, (struct sockaddr *)&bound.address, &size) && *bound.address.sun_path != '/')
    snprintf(link_of_file, sizeof link_of_file, "/proc/self/fd/%d", result);
  errno = reason;
  return result;
}

static size_t end_length(const char *text, size_t length, const char *end) {
  size_t size = strlen(end);
  return length >= size && !memcmp(text + length - size, end, size) ? size : 0;
}

ssize_t sockets_link(const char *path, char *text, size_t size, ssize_t length) {
  if (length <= 0 || !*link_of_file || strcmp(path, link_of_file)) return length;
  *link_of_file = 0;
  const char *name = bound.address.sun_path;
  char end[sizeof bound + 1];
  while (!strncmp(name, "./", 2)) name += 2;
  snprintf(end, sizeof end, "/%s", name);
  size_t suffix = end_length(text, (size_t)length, DELETED), whole = (size_t)length - suffix;
  if (end_length(text, whole, end)) return length;
  const char *slash = memrchr(text, '/', whole);
  size_t above = slash ? (size_t)(slash - text) : 0;
  if (above + strlen(end) + suffix >= size) return length;
  memcpy(text + above, end, strlen(end));
  memcpy(text + above + strlen(end), DELETED, suffix);
  return (ssize_t)(above + strlen(end) + suffix);
}
