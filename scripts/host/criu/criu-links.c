/* Keeps the names `link_remap.N` that CRIU makes during a dump. A file that is open by a deleted name and has another
 * hard link gets such a name: a restore opens the file by that name and removes the name. CRIU also removes it at the
 * end of a dump whose processes continue, so a disk that is kept or copied after the dump would lack it.
 *
 * The name is first written to a list in the work directory, followed by a zero byte. The program that requested the
 * dump removes the names with `svc-inside remove-links` if the sandbox continues. */

#define _GNU_SOURCE
#include "criu-links.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIST "link-remaps"
#define PREFIX "link_remap."
/* Limit of the list in bytes. A dump that needs more fails. */
enum { LONGEST_LIST = 1024 * 1024 };

static int work = -1;
static int given;

void links_work_here(void) {
  if (work < 0) work = (int)syscall(SYS_openat, AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

static int is_given_name(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t prefix = strlen(PREFIX);
  if (strncmp(name, PREFIX, prefix)) return 0;
  return name[prefix] && !name[prefix + strspn(name + prefix, "0123456789")];
}

int links_note(const char *path, int flags) {
  // A restore makes the link in the other direction, from name to name.
  if (!(flags & AT_EMPTY_PATH) || !is_given_name(path)) return 0;
  int list = (int)syscall(SYS_openat, work, LIST, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (list < 0) return -1;
  struct stat about;
  size_t size = strlen(path) + 1;
  int failed = fstat(list, &about);
  if (!failed && (size_t)about.st_size + size > LONGEST_LIST) errno = EFBIG, failed = -1;
  if (!failed && write(list, path, size) != (ssize_t)size) errno = ENOSPC, failed = -1;
  int reason = errno;
  close(list);
  errno = reason;
  if (failed) return -1;
  given = 1;
  return 0;
}

int links_stays(const char *path) { return given && is_given_name(path); }
