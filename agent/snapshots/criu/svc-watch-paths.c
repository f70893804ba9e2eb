/* svc-watch-paths WORK PID: tells CRIU by which paths the processes of a frozen container watch files, so that a dump need not
 * search the disk for them. Reads the ids of the processes from its input, one a line; PID is the first one, whose root and mounts
 * count. Writes WORK/irmap-cache, which CRIU checks entry by entry; writes no file when no process watches files. Also writes
 * WORK/socket-names, see socket-names.c.
 *
 * The kernel names a watched file by device, inode and a handle. On overlayfs the handle does not open, but has the handle of the
 * file in its layer in it, which does (struct ovl_fb of the kernel). What a sandbox could have put there is taken only if its path,
 * resolved in the sandbox's own root, leads to that device and inode. */

#define _GNU_SOURCE
#include "watch-paths.h"
#include "socket-names.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE "irmap-cache"
/* Numbers at the begin of the file, as in CRIU's images. */
static const unsigned MAGICS[] = { 0x55105940, 0x57004059 };
enum { LONGEST_LINE = 512 };

static struct watched *all;
static size_t count, room;

static void add(const struct watched *one) {
  if (count == room) {
    room = room ? room * 2 : 64;
    all = reallocarray(all, room, sizeof *all);
    if (!all) give_up("memory");
  }
  all[count++] = *one;
}

/* One line of /proc/PID/fdinfo/FD, see fs/notify/fdinfo.c. */
static int parse(const char *line, struct watched *one) {
  unsigned long inode;
  unsigned device, size, type;
  int at = 0;
  memset(one, 0, sizeof *one);
  if (sscanf(line, "inotify wd:%*x ino:%lx sdev:%x mask:%*x ignored_mask:%*x fhandle-bytes:%x fhandle-type:%x f_handle:%n",
             &inode, &device, &size, &type, &at) != 4 || !at || size > sizeof one->handle)
    return 0;
  for (unsigned i = 0; i < size; i++)
    if (sscanf(line + at + 2 * i, "%2hhx", &one->handle[i]) != 1) return 0;
  one->inode = inode;
  one->device = device;
  one->size = size;
  one->type = type;
  return 1;
}

static void read_watches(int process, const char *descriptor) {
  char name[NAME_MAX + 16], line[LONGEST_LINE];
  struct watched one;
  snprintf(name, sizeof name, "fdinfo/%s", descriptor);
  int file = openat(process, name, O_RDONLY | O_CLOEXEC);
  FILE *stream = file < 0 ? NULL : fdopen(file, "r");
  if (!stream) return;
  while (fgets(line, sizeof line, stream))
    if (parse(line, &one)) add(&one);
  fclose(stream);
}

static void look_at(long pid) {
  char name[64], target[64];
  snprintf(name, sizeof name, "/proc/%ld", pid);
  int process = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // It has ended, or was never there.
  if (process < 0) return;
  int directory = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = directory < 0 ? NULL : fdopendir(directory);
  for (struct dirent *entry; entries && (entry = readdir(entries));) {
    ssize_t length = readlinkat(dirfd(entries), entry->d_name, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = 0;
    unsigned long inode;
    if (!strcmp(target, "anon_inode:inotify")) read_watches(process, entry->d_name);
    if (sscanf(target, "socket:[%lu]", &inode) == 1) add_socket(pid, atoi(entry->d_name), inode);
  }
  if (entries) closedir(entries);
  close(process);
}

static int compare(const void *one, const void *other) {
  return memcmp(one, other, offsetof(struct watched, path));
}

/* Descriptors are shared between processes, and many watch the same directory. */
static void drop_repeated(void) {
  size_t kept = 0;
  qsort(all, count, sizeof *all, compare);
  for (size_t i = 0; i < count; i++)
    if (!kept || compare(&all[kept - 1], &all[i])) all[kept++] = all[i];
  count = kept;
}

static size_t put_number(unsigned char *to, unsigned long value) {
  size_t length = 0;
  for (; value > 127; value >>= 7) to[length++] = (unsigned char)(value | 128);
  to[length++] = (unsigned char)value;
  return length;
}

/* message irmap_cache_entry { uint32 dev = 1; uint64 inode = 2; string path = 3; } of CRIU. */
static void write_entry(FILE *file, const struct watched *one) {
  unsigned char head[64];
  size_t length = strlen(one->path), used = 0;
  head[used++] = 1 << 3;
  used += put_number(head + used, one->device);
  head[used++] = 2 << 3;
  used += put_number(head + used, one->inode);
  head[used++] = 3 << 3 | 2;
  used += put_number(head + used, length);
  unsigned size = (unsigned)(used + length);
  fwrite(&size, sizeof size, 1, file);
  fwrite(head, used, 1, file);
  fwrite(one->path, length, 1, file);
}

static void write_cache(const char *work) {
  int directory = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int opened = directory < 0 ? -1 : openat(directory, CACHE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  FILE *file = opened < 0 ? NULL : fdopen(opened, "w");
  if (!file) give_up(work);
  fwrite(MAGICS, sizeof MAGICS, 1, file);
  for (size_t i = 0; i < count; i++)
    if (all[i].path) write_entry(file, &all[i]);
  if (ferror(file) | fclose(file)) give_up(work);
}

int main(int arguments, char *argument[]) {
  long pid = arguments == 3 ? atol(argument[2]) : 0, other;
  if (pid <= 0) {
    fprintf(stderr, "usage: svc-watch-paths WORK PID, and ids of processes in its input\n");
    return 2;
  }
  struct pids pids = { 0 };
  while (scanf("%ld", &other) == 1) {
    pids.ids = reallocarray(pids.ids, pids.count + 1, sizeof *pids.ids);
    if (!pids.ids) give_up("memory");
    pids.ids[pids.count++] = other;
    look_at(other);
  }
  write_socket_names(pid, argument[1]);
  drop_repeated();
  if (count == 0) return 0;
  find_paths(pid, pids, all, count);
  write_cache(argument[1]);
  return 0;
}
