/* Pages of a dump. CRIU takes the memory of a process through pipes, and moves each piece of it that lies together to the image by a
 * call of splice(2): tens of thousands for a browser, most of them of one page. All that is in such a pipe goes to that image, in this
 * order; so this file moves the whole of it at the first call, and answers the others from what has been moved. */

#define _GNU_SOURCE
#include "../criu-walk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bytes that have been moved and that CRIU has not asked for yet. */
static struct {
  int pipe, image;
  size_t bytes;
} ahead;

/* Returns how many bytes wait in the pipe; 0 if these are no pipe and no file. */
static size_t waiting(int from, int to) {
  struct stat about;
  int bytes = 0;
  if (syscall(SYS_fstat, to, &about) || !S_ISREG(about.st_mode) || fcntl(from, F_GETPIPE_SZ) < 0) return 0;
  return syscall(SYS_ioctl, from, FIONREAD, &bytes) || bytes < 0 ? 0 : (size_t)bytes;
}

EXPORTED ssize_t splice(int from, off64_t *at, int to, off64_t *place, size_t length, unsigned flags) {
  // Other calls of CRIU have other flags, or offsets.
  if (at || place || flags != SPLICE_F_MOVE) return syscall(SYS_splice, from, at, to, place, length, flags);
  if (ahead.bytes == 0) {
    size_t whole = waiting(from, to);
    ssize_t moved = syscall(SYS_splice, from, NULL, to, NULL, whole > length ? whole : length, flags);
    if (moved <= 0 || (size_t)moved <= length) return moved;
    ahead.pipe = from;
    ahead.image = to;
    ahead.bytes = (size_t)moved;
  } else if (ahead.pipe != from || ahead.image != to) {
    // Never so: what has been moved would be in the wrong image.
    return errno = EIO, -1;
  }
  size_t taken = length < ahead.bytes ? length : ahead.bytes;
  ahead.bytes -= taken;
  return (ssize_t)taken;
}
