/* svc-disk-copy ahead SOURCE COPY MOUNT: copies a disk image while programs write to its file system, mounted at MOUNT.
 * svc-disk-copy finish SOURCE COPY MOUNT: freezes that file system, makes the copy equal to the image, and thaws it.
 *
 * Only `finish` runs while the processes of the sandbox stand still, so it writes only what has changed since `ahead`. It
 * compares the contents, because nothing else tells what changed: after `ahead` most of both files is in the page cache.
 * On a file system with reflinks `finish` shares the extents, and `ahead` has nothing to do. Holes stay holes.
 *
 * It ends with the program that started it. If it is killed, the file system stays frozen until somebody runs
 * `fsfreeze --unfreeze MOUNT`. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, PIECE = 1 << 16 };

static char from[CHUNK], to[CHUNK];
static int mounted = -1;
static int is_frozen;

static void thaw(void) {
  if (is_frozen && ioctl(mounted, FITHAW, 0)) perror("svc-disk-copy: thaw");
  is_frozen = 0;
}

static void give_up(const char *what) {
  fprintf(stderr, "svc-disk-copy: %s: %s\n", what, strerror(errno));
  thaw();
  exit(1);
}

static size_t read_at(int file, char *into, size_t length, off_t at, const char *what) {
  size_t got = 0;
  while (got < length) {
    ssize_t some = pread(file, into + got, length - got, at + (off_t)got);
    if (some < 0) give_up(what);
    if (!some) break;
    got += (size_t)some;
  }
  return got;
}

static void write_at(int file, const char *what, size_t length, off_t at) {
  while (length > 0) {
    ssize_t some = pwrite(file, what, length, at);
    if (some < 0) give_up("writing the copy");
    what += some, at += some, length -= (size_t)some;
  }
}

/* The end of the data that begins at or after *at, which becomes its beginning; 0 without any. */
static off_t next_data(int file, off_t *at, off_t size) {
  off_t begin = lseek(file, *at, SEEK_DATA);
  if (begin < 0) {
    if (errno != ENXIO) give_up("looking for data");
    return 0;
  }
  off_t end = lseek(file, begin, SEEK_HOLE);
  if (end < 0) give_up("looking for a hole");
  *at = begin;
  return end < size ? end : size;
}

static void copy_data(int source, int copy, off_t begin, off_t end, int compares) {
  for (off_t at = begin; at < end;) {
    size_t length = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
    size_t got = read_at(source, from, length, at, "reading the disk");
    memset(from + got, 0, length - got);
    if (!compares) {
      write_at(copy, from, length, at);
    } else {
      size_t had = read_at(copy, to, length, at, "reading the copy");
      memset(to + had, 0, length - had);
      for (size_t piece = 0; piece < length; piece += PIECE) {
        size_t size = length - piece < PIECE ? length - piece : PIECE;
        if (memcmp(from + piece, to + piece, size)) write_at(copy, from + piece, size, at + (off_t)piece);
      }
    }
    at += (off_t)length;
  }
}

/* Makes the copy equal to the source. Where the source has a hole, the copy gets one. */
static void copy_all(int source, int copy, int compares) {
  struct stat about;
  if (fstat(source, &about)) give_up("the disk");
  if (ftruncate(copy, about.st_size)) give_up("the size of the copy");
  off_t done = 0;
  for (;;) {
    off_t begin = done;
    off_t end = done < about.st_size ? next_data(source, &begin, about.st_size) : 0;
    off_t hole = end ? begin : about.st_size;
    if (compares && hole > done && fallocate(copy, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, done, hole - done))
      give_up("a hole in the copy");
    if (!end) return;
    copy_data(source, copy, begin, end, compares);
    done = end;
  }
}

/* A plain directory would freeze the file system of the host, which the copy itself is on. */
static void check_mounted(int source) {
  struct stat image, place;
  if (fstat(source, &image) || fstat(mounted, &place)) give_up("the disk");
  if (image.st_dev == place.st_dev) errno = EINVAL, give_up("the disk is not mounted");
}

/* A disk that has failed must not count as a good copy. ext4 counts errors in its superblock, at byte 1024 of the disk. */
static void check_healthy(int source) {
  struct statvfs state;
  uint32_t errors = 0;
  if (fstatvfs(mounted, &state)) give_up("the state of the disk");
  if (pread(source, &errors, sizeof errors, 1024 + 0x194) != sizeof errors) give_up("the state of the disk");
  if ((state.f_flag & ST_RDONLY) || errors) errno = EIO, give_up("the disk has failed");
}

int main(int count, char **arguments) {
  int ahead = count == 5 && !strcmp(arguments[1], "ahead");
  if (!ahead && (count != 5 || strcmp(arguments[1], "finish"))) {
    fprintf(stderr, "usage: svc-disk-copy ahead|finish SOURCE COPY MOUNT\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int source = open(arguments[2], O_RDONLY | O_CLOEXEC);
  if (source < 0) give_up(arguments[2]);
  int copy = open(arguments[3], O_RDWR | O_CREAT | O_CLOEXEC | (ahead ? O_TRUNC : 0), 0600);
  if (copy < 0) give_up(arguments[3]);
  mounted = open(arguments[4], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (mounted < 0) give_up(arguments[4]);
  check_mounted(source);
  if (ahead) {
    if (syncfs(mounted)) give_up("flushing the disk");
    if (ioctl(copy, FICLONE, source)) copy_all(source, copy, 0);
    return 0;
  }
  // EBUSY: another program froze it, and may thaw it before the copy is complete.
  if (ioctl(mounted, FIFREEZE, 0)) give_up("freezing the disk");
  is_frozen = 1;
  check_healthy(source);
  if (ioctl(copy, FICLONE, source)) copy_all(source, copy, 1);
  thaw();
  return 0;
}
