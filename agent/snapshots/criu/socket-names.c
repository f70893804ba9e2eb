/* Lists the bound Unix sockets whose file was renamed: a server binds a temporary name and gives its file the name that clients use,
 * as HAProxy does. CRIU stores the bound name. A restore would make a new file under that name, and no process would listen on the file
 * that clients know. The agent puts the names of this list in CRIU's images (connections/image.ts).
 *
 * The kernel opens the file of a socket (SIOCUNIXFILE), and the link of that descriptor has the name of the file by now. A name counts
 * only if it leads to that file in the sandbox's own root, without any link of /proc. For a file whose bound name was removed, another
 * hard link is looked for in the same directory. */

#define _GNU_SOURCE
#include "socket-names.h"
#include "watch-paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define LIST "socket-names"
#define UNFINISHED LIST ".new"
#define DELETED " (deleted)"
/* Opens the file of a Unix socket, see include/uapi/linux/un.h. */
enum { OPEN_FILE = 0x89e0 };
/* Limits of what a sandbox can ask for: bytes of the list, and entries of directories that are read for it. */
enum { LONGEST_LIST = 4 * 1024 * 1024, MOST_ENTRIES = 100000 };

struct socket {
  unsigned long inode;
  long pid;
  int descriptor;
};

static struct socket *all;
static size_t count, room, written, entries_read;
static int root;
static FILE *list;

void add_socket(long pid, int descriptor, unsigned long inode) {
  if (count == room) {
    room = room ? room * 2 : 64;
    all = reallocarray(all, room, sizeof *all);
    if (!all) give_up("memory");
  }
  all[count++] = (struct socket){ inode, pid, descriptor };
}

static int compare(const void *one, const void *other) {
  unsigned long first = ((const struct socket *)one)->inode, second = ((const struct socket *)other)->inode;
  return first < second ? -1 : first > second;
}

static int open_in_root(const char *path, unsigned long flags) {
  struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
  return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static int is(const struct stat *file, const struct stat *about) {
  return file->st_ino == about->st_ino && file->st_dev == about->st_dev;
}

static int leads_to(const char *path, const struct stat *file) {
  struct stat about;
  int found = open_in_root(path, O_PATH | O_NOFOLLOW);
  if (found < 0) return 0;
  int same = !fstat(found, &about) && is(file, &about);
  close(found);
  return same;
}

static int ends_with(const char *text, const char *end) {
  size_t length = strlen(text), size = strlen(end);
  return length >= size && !strcmp(text + length - size, end);
}

/* Whether CRIU binds the right file by the name that it has. It takes a file whose name ends like that for a deleted one. */
static int is_right(const char *bound, const char *path, const struct stat *file) {
  if (ends_with(path, DELETED)) return 0;
  if (*bound == '/') return !strcmp(bound, path) || leads_to(bound, file);
  char end[sizeof(struct sockaddr_un) + 2];
  while (!strncmp(bound, "./", 2)) bound += 2;
  snprintf(end, sizeof end, "/%s", bound);
  return ends_with(path, end);
}

/* Puts the name of another hard link of the file in the place of the last part of the path. Returns whether there is one. */
static int find_link(char path[PATH_MAX], const struct stat *file) {
  struct stat about;
  char *name = strrchr(path, '/') + 1, first = *name;
  *name = 0;
  int directory = open_in_root(path, O_RDONLY | O_DIRECTORY), found = 0;
  *name = first;
  DIR *entries = directory < 0 ? NULL : fdopendir(directory);
  for (struct dirent *entry; entries && !found && entries_read < MOST_ENTRIES && (entry = readdir(entries)); entries_read++) {
    if (entry->d_type != DT_SOCK && entry->d_type != DT_UNKNOWN) continue;
    if (fstatat(dirfd(entries), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) || !is(file, &about)) continue;
    if ((size_t)(name - path) + strlen(entry->d_name) >= PATH_MAX) continue;
    strcpy(name, entry->d_name);
    found = 1;
  }
  if (entries) closedir(entries);
  return found;
}

static void write_name(unsigned long inode, const char *directory, const char *name) {
  written += strlen(directory) + strlen(name) + 24;
  if (written > LONGEST_LIST) errno = EFBIG, give_up(LIST);
  fprintf(list, "%lu%c%s%c%s%c", inode, 0, directory, 0, name, 0);
}

/* An address has little room, so a long path is a directory, in which CRIU binds, and a name. */
static void write_path(unsigned long inode, const char *bound, char *path) {
  size_t longest = sizeof(struct sockaddr_un) - offsetof(struct sockaddr_un, sun_path) - 1;
  char *slash = strrchr(path, '/');
  if (*bound == '/' && strlen(path) <= longest) {
    write_name(inode, "", path);
  } else if (strlen(slash + 1) <= longest) {
    *slash = 0;
    write_name(inode, *path ? path : "/", slash + 1);
  }
}

static void look_at(unsigned long inode, int socket) {
  union {
    struct sockaddr_un address;
    char room[sizeof(struct sockaddr_un) + 1];
  } bound = { 0 };
  socklen_t size = sizeof bound.address;
  char link[64], path[PATH_MAX];
  struct stat file;
  if (getsockname(socket, (struct sockaddr *)&bound.address, &size) || bound.address.sun_family != AF_UNIX) return;
  const char *name = bound.address.sun_path;
  int opened = *name ? ioctl(socket, OPEN_FILE, 0) : -1;
  if (opened < 0) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", opened);
  ssize_t length = readlink(link, path, sizeof path - 1);
  int known = length > 0 && *path == '/' && !fstat(opened, &file);
  close(opened);
  if (!known) return;
  path[length] = 0;
  int deleted = ends_with(path, DELETED) && !leads_to(path, &file);
  if (deleted) path[length - (ssize_t)strlen(DELETED)] = 0;
  if (deleted ? file.st_nlink == 0 || !find_link(path, &file) : is_right(name, path, &file)) return;
  if (leads_to(path, &file)) write_path(inode, name, path);
}

static int in_namespace_of(long pid, long other) {
  char name[64];
  struct stat first, second;
  snprintf(name, sizeof name, "/proc/%ld/ns/mnt", pid);
  if (stat(name, &first)) return 0;
  snprintf(name, sizeof name, "/proc/%ld/ns/mnt", other);
  return !stat(name, &second) && is(&first, &second);
}

static void look_at_all(long first) {
  long current = 0;
  int process = -1, here = 0;
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && all[i - 1].inode == all[i].inode) continue;
    if (all[i].pid != current) {
      if (process >= 0) close(process);
      current = all[i].pid;
      process = (int)syscall(SYS_pidfd_open, current, 0);
      here = in_namespace_of(first, current);
    }
    // Paths in another mount namespace are not those of the sandbox's root.
    int socket = process < 0 || !here ? -1 : (int)syscall(SYS_pidfd_getfd, process, all[i].descriptor, 0);
    if (socket < 0) continue;
    look_at(all[i].inode, socket);
    close(socket);
  }
  if (process >= 0) close(process);
}

void write_socket_names(long pid, const char *work) {
  char name[PATH_MAX];
  if (count == 0) return;
  snprintf(name, sizeof name, "/proc/%ld/root", pid);
  root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) give_up(name);
  qsort(all, count, sizeof *all, compare);
  int directory = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int opened = directory < 0 ? -1 : openat(directory, UNFINISHED, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  list = opened < 0 ? NULL : fdopen(opened, "w");
  if (!list) give_up(work);
  look_at_all(pid);
  if (ferror(list) | fclose(list)) give_up(LIST);
  // A list has all of its entries.
  if (renameat(directory, UNFINISHED, directory, LIST)) give_up(LIST);
  close(directory);
  close(root);
}
