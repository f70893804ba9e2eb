/* svc-volume-files DIRECTORY OPERATION PATH ARGUMENT…: works on the files of one volume. DIRECTORY is where the volume is
 * mounted: `files` holds what sandboxes see, `tmp` what is being written or removed. PATH is below `files`.
 *
 * Sandboxes change the tree at the same time and may put links, pipes and devices into it. So the program resolves every
 * path by openat2 with RESOLVE_BENEATH: the kernel refuses a path or link that leads out of `files`, also one that a sandbox
 * puts there at that moment. The program opens only regular files and directories, so no pipe or device can hold it.
 *
 * Prints one line of JSON, either what was asked for or {"error": …}; after it `read` prints the content, `list` the entries.
 * `write` reads the content from its standard input and makes it visible only after the byte `c` on descriptor 3: the end of
 * an upload that was cut looks like the end of the content. */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 256 * 1024, RACES = 1000, COMMIT = 3, UNSET = -1 };

static int files, tmp;

__attribute__((noreturn)) static void refuse(const char *code, const char *message) {
  printf("{\"error\":\"%s\",\"message\":\"%s\"}\n", code, message);
  fflush(stdout);
  exit(0);
}

/* Refuses for the reason in errno. */
__attribute__((noreturn)) static void fail(void) {
  switch (errno) {
    case ENOENT: case ENOTDIR: refuse("not_found", "no such file or directory");
    case EXDEV: refuse("bad_request", "the path leads out of the volume");
    case ELOOP: refuse("bad_request", "the path has too many links");
    case ENAMETOOLONG: refuse("bad_request", "the path is too long");
    case ENOSPC: case EDQUOT: refuse("no_space", "the volume is full");
    case EEXIST: refuse("conflict", "the path exists already");
    case EPERM: case EACCES: refuse("forbidden", "the file system does not allow it");
    default:
      fprintf(stderr, "svc-volume-files: %s\n", strerror(errno));
      exit(1);
  }
}

/* Opens a path below `files`. A rename at the same time makes openat2 give up with EAGAIN. */
static int beneath(const char *path, uint64_t flags) {
  struct open_how how = { .flags = flags | O_CLOEXEC,
                          .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
  for (int tries = 0;; tries++) {
    int opened = (int)syscall(SYS_openat2, files, *path ? path : ".", &how, sizeof how);
    if (opened >= 0 || errno != EAGAIN || tries == RACES) return opened;
  }
}

/* Opens what an O_PATH descriptor names, which has been found to be a regular file or a directory. */
static int reopen(int named, int flags) {
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", named);
  return open(link, flags | O_CLOEXEC);
}

static void print_text(const char *text) {
  putchar('"');
  for (const unsigned char *at = (const unsigned char *)text; *at;) {
    int length = *at < 0x80 ? 1 : (*at & 0xe0) == 0xc0 ? 2 : (*at & 0xf0) == 0xe0 ? 3 : (*at & 0xf8) == 0xf0 ? 4 : 0;
    uint32_t point = length == 1 ? *at : length ? *at & (0x7f >> length) : 0;
    for (int i = 1; i < length; i++) {
      if ((at[i] & 0xc0) != 0x80) length = 0;
      else point = point << 6 | (at[i] & 0x3f);
    }
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (!length || point < least[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
      // Not UTF-8: JSON cannot carry such a name.
      fputs("\\ufffd", stdout);
      at++;
      continue;
    }
    if (point < 0x20 || point == '"' || point == '\\' || point == 0x7f) printf("\\u%04x", point);
    else fwrite(at, 1, (size_t)length, stdout);
    at += length;
  }
  putchar('"');
}

static void print_time(const char *name, struct timespec at) {
  struct tm parts;
  char text[32] = "1970-01-01T00:00:00";
  if (gmtime_r(&at.tv_sec, &parts) && parts.tm_year < 8100 && parts.tm_year > -1900)
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  printf(",\"%s\":\"%s.%03ldZ\"", name, text, at.tv_nsec / 1000000);
}

/* @param named the entry by an O_PATH descriptor, or a directory and the entry's name in it */
static void print_entry(const char *path, const struct stat *about, int named, const char *name) {
  const char *kind = S_ISREG(about->st_mode) ? "file" : S_ISDIR(about->st_mode) ? "directory"
                     : S_ISLNK(about->st_mode) ? "symlink" : "unknown";
  const char *last = strrchr(path, '/');
  last = last ? last + 1 : path;
  fputs("{\"name\":", stdout);
  print_text(*last ? last : "/");
  printf(",\"type\":\"%s\",\"path\":", kind);
  char *whole;
  if (asprintf(&whole, "/%s", path) < 0) fail();
  print_text(whole);
  free(whole);
  printf(",\"size\":%lld,\"mode\":%u,\"uid\":%u,\"gid\":%u", (long long)about->st_size, about->st_mode & 07777U,
         about->st_uid, about->st_gid);
  print_time("atime", about->st_atim);
  print_time("mtime", about->st_mtim);
  print_time("ctime", about->st_ctim);
  char target[PATH_MAX];
  ssize_t length = S_ISLNK(about->st_mode) ? readlinkat(named, name, target, sizeof target - 1) : -1;
  if (length >= 0) {
    target[length] = 0;
    fputs(",\"target\":", stdout);
    print_text(target);
  }
  putchar('}');
}

static void answer_entry(const char *path, int named) {
  struct stat about;
  if (fstat(named, &about)) fail();
  fputs("{\"entry\":", stdout);
  print_entry(path, &about, named, "");
  puts("}");
}

/* The directory that holds the path's last name. */
static int parent_of(const char *path, const char **name) {
  const char *last = strrchr(path, '/');
  *name = last ? last + 1 : path;
  char *parent = strndup(path, last ? (size_t)(last - path) : 0);
  if (!parent) fail();
  int opened = beneath(parent, O_PATH | O_DIRECTORY);
  free(parent);
  return opened;
}

/* -1 stands for a value that was not given. */
static void set_metadata(int named, int64_t uid, int64_t gid, int64_t mode) {
  char link[32];
  // Before the mode, because a change of owner takes the bits for set-user-id away.
  if ((uid != UNSET || gid != UNSET) &&
      fchownat(named, "", (uid_t)uid, (gid_t)gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
    fail();
  if (mode == UNSET) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", named);
  struct stat about;
  if (fstat(named, &about)) fail();
  if (S_ISLNK(about.st_mode)) refuse("bad_request", "a symbolic link has no mode of its own");
  if (chmod(link, (mode_t)mode)) fail();
}

static void read_file(const char *path) {
  struct stat about;
  int named = beneath(path, O_PATH);
  if (named < 0 || fstat(named, &about)) fail();
  if (!S_ISREG(about.st_mode)) refuse("not_found", "the path is not a regular file");
  int file = reopen(named, O_RDONLY);
  if (file < 0) fail();
  posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
  printf("{\"size\":%lld}\n", (long long)about.st_size);
  fflush(stdout);
  // Exactly as many bytes as announced: the file may grow meanwhile. One that shrinks cuts the answer.
  static char chunk[CHUNK];
  for (off_t left = about.st_size; left > 0;) {
    ssize_t got = read(file, chunk, left < CHUNK ? (size_t)left : CHUNK);
    if (got <= 0) exit(1);
    for (ssize_t sent = 0; sent < got;) {
      ssize_t some = write(STDOUT_FILENO, chunk + sent, (size_t)(got - sent));
      if (some < 0) exit(1);
      sent += some;
    }
    left -= got;
  }
}

/* A name in `tmp` that nothing else has. */
static void temporary_name(char *name, size_t size) {
  static unsigned count;
  snprintf(name, size, "%d-%llx-%u", getpid(), (unsigned long long)time(NULL), count++);
}

static void write_file(const char *path, int64_t uid, int64_t gid, int64_t mode, int force) {
  const char *name;
  struct stat about, above;
  int parent = parent_of(path, &name);
  if (!*path) refuse("conflict", "the path is a directory");
  if (parent < 0 || fstat(parent, &above)) fail();
  int exists = !fstatat(parent, name, &about, AT_SYMLINK_NOFOLLOW);
  if (!exists && errno != ENOENT) fail();
  if (exists && S_ISDIR(about.st_mode)) refuse("conflict", "the path is a directory");
  if (exists && !force) refuse("conflict", "the path exists already");
  int keeps = exists && S_ISREG(about.st_mode);
  if (mode == UNSET) mode = keeps ? about.st_mode & 07777 : 0644;
  if (uid == UNSET) uid = keeps ? about.st_uid : above.st_uid;
  if (gid == UNSET) gid = keeps ? about.st_gid : above.st_gid;

  int file = openat(tmp, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) fail();
  static char chunk[CHUNK];
  ssize_t got;
  while ((got = read(STDIN_FILENO, chunk, CHUNK)) != 0) {
    if (got < 0) exit(1);
    for (ssize_t done = 0; done < got;) {
      ssize_t some = write(file, chunk + done, (size_t)(got - done));
      if (some < 0) fail();
      done += some;
    }
  }
  char commit = 0;
  if (read(COMMIT, &commit, 1) != 1 || commit != 'c') exit(1);
  if (fchown(file, (uid_t)uid, (gid_t)gid) || fchmod(file, (mode_t)mode) || fsync(file)) fail();

  char link[32], made[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (!force) {
    if (linkat(AT_FDCWD, link, parent, name, AT_SYMLINK_FOLLOW)) fail();
  } else {
    temporary_name(made, sizeof made);
    if (linkat(AT_FDCWD, link, tmp, made, AT_SYMLINK_FOLLOW)) fail();
    if (renameat(tmp, made, parent, name)) {
      int why = errno;
      unlinkat(tmp, made, 0);
      if (why == EISDIR) refuse("conflict", "the path is a directory");
      errno = why;
      fail();
    }
  }
  int directory = reopen(parent, O_RDONLY | O_DIRECTORY);
  if (directory < 0 || fsync(directory)) fail();
  answer_entry(path, file);
}

/* @return 0 if it exists already */
static int make_one(int parent, const char *name, int64_t uid, int64_t gid, int64_t mode) {
  struct stat above;
  if (fstat(parent, &above)) fail();
  if (mkdirat(parent, name, 0700)) {
    if (errno == EEXIST) return 0;
    fail();
  }
  int made = openat(parent, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
  if (made < 0) fail();
  set_metadata(made, uid == UNSET ? above.st_uid : uid, gid == UNSET ? above.st_gid : gid, mode == UNSET ? 0755 : mode);
  close(made);
  return 1;
}

static void make_directory(const char *path, int64_t uid, int64_t gid, int64_t mode, int force) {
  char above[PATH_MAX];
  if (strlen(path) >= sizeof above) errno = ENAMETOOLONG, fail();
  // The directories above, from the first one on.
  for (const char *slash = path; force && (slash = strchr(slash, '/')); slash++) {
    snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
    int there = beneath(above, O_PATH | O_DIRECTORY);
    if (there < 0 && errno == ENOENT) {
      const char *name;
      int parent = parent_of(above, &name);
      if (parent < 0) fail();
      make_one(parent, name, uid, gid, mode);
      close(parent);
    } else if (there < 0) {
      if (errno == ENOTDIR) refuse("conflict", "a part of the path is not a directory");
      fail();
    } else {
      close(there);
    }
  }
  if (*path) {
    const char *name;
    int parent = parent_of(path, &name);
    if (parent < 0) fail();
    if (make_one(parent, name, uid, gid, mode)) force = 1;
  }
  int made = beneath(path, O_PATH | O_NOFOLLOW);
  struct stat about;
  if (made < 0 || fstat(made, &about)) fail();
  if (!force || !S_ISDIR(about.st_mode)) refuse("conflict", "the path exists already");
  answer_entry(path, made);
}

/* Removes everything in a directory of `tmp`. A directory in it that is not empty is put beside it, so that the depth of the tree
 * takes no memory and no descriptors. */
static void empty(unsigned number, unsigned *count, const char *prefix) {
  char name[96], moved[96];
  snprintf(name, sizeof name, "%s-%u", prefix, number);
  for (int round = 0;; round++) {
    int directory = openat(tmp, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = directory < 0 ? NULL : fdopendir(directory);
    if (!entries) fail();
    for (struct dirent *entry; (entry = readdir(entries));) {
      if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
      if (!unlinkat(directory, entry->d_name, 0) || errno == ENOENT) continue;
      if (errno != EISDIR) fail();
      if (!unlinkat(directory, entry->d_name, AT_REMOVEDIR) || errno == ENOENT) continue;
      if (errno != ENOTEMPTY) fail();
      snprintf(moved, sizeof moved, "%s-%u", prefix, (*count)++);
      if (renameat(directory, entry->d_name, tmp, moved) && errno != ENOENT) fail();
    }
    closedir(entries);
    if (!unlinkat(tmp, name, AT_REMOVEDIR)) return;
    // A program whose working directory it is may still write there.
    if (errno != ENOTEMPTY || round == RACES) fail();
  }
}

static void remove_path(const char *path) {
  const char *name;
  if (!*path) refuse("bad_request", "the root of a volume cannot be removed");
  int parent = parent_of(path, &name);
  if (parent < 0) fail();
  if (!unlinkat(parent, name, 0)) {
    puts("{}");
    return;
  }
  if (errno != EISDIR) fail();
  char prefix[64], first[96];
  temporary_name(prefix, sizeof prefix);
  snprintf(first, sizeof first, "%s-0", prefix);
  if (renameat(parent, name, tmp, first)) fail();
  unsigned count = 1;
  for (unsigned number = 0; number < count; number++) {
    struct stat about;
    snprintf(first, sizeof first, "%s-%u", prefix, number);
    if (!fstatat(tmp, first, &about, AT_SYMLINK_NOFOLLOW)) empty(number, &count, prefix);
  }
  puts("{}");
}

static int printed;

static void list_entries(int directory, const char *path, int depth) {
  DIR *entries = fdopendir(directory);
  if (!entries) exit(1);
  for (struct dirent *entry; (entry = readdir(entries));) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    struct stat about;
    if (fstatat(directory, entry->d_name, &about, AT_SYMLINK_NOFOLLOW)) continue;
    char *below;
    if (asprintf(&below, "%s%s%s", path, *path ? "/" : "", entry->d_name) < 0) exit(1);
    if (printed++) putchar(',');
    print_entry(below, &about, directory, entry->d_name);
    if (ferror(stdout)) exit(1);
    if (depth > 1 && S_ISDIR(about.st_mode)) {
      int inner = openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (inner >= 0) list_entries(inner, below, depth - 1);
    }
    free(below);
  }
  closedir(entries);
}

static void list(const char *path, int depth) {
  struct stat about;
  int named = beneath(path, O_PATH);
  if (named < 0 || fstat(named, &about)) fail();
  if (!S_ISDIR(about.st_mode)) refuse("bad_request", "the path is not a directory");
  int directory = reopen(named, O_RDONLY | O_DIRECTORY);
  if (directory < 0) fail();
  puts("{}");
  putchar('[');
  list_entries(directory, path, depth);
  puts("]");
}

/* Opens a directory of the volume itself, which sandboxes cannot change. */
static int own(const char *volume, const char *name) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", volume, name);
  int opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) {
    perror(path);
    exit(1);
  }
  return opened;
}

static int64_t number(const char *text) { return strcmp(text, "-") ? strtoll(text, NULL, 10) : UNSET; }

int main(int count, char **arguments) {
  umask(0);
  if (count < 4) return 2;
  const char *operation = arguments[2], *path = arguments[3];
  files = own(arguments[1], "files");
  tmp = own(arguments[1], "tmp");
  if (!strcmp(operation, "stat") || (!strcmp(operation, "change") && count == 7)) {
    int named = beneath(path, O_PATH | O_NOFOLLOW);
    if (named < 0) fail();
    if (count == 7) set_metadata(named, number(arguments[4]), number(arguments[5]), number(arguments[6]));
    answer_entry(path, named);
  } else if (!strcmp(operation, "list") && count == 5) {
    list(path, atoi(arguments[4]));
  } else if (!strcmp(operation, "make") && count == 8) {
    make_directory(path, number(arguments[4]), number(arguments[5]), number(arguments[6]), *arguments[7] == '1');
  } else if (!strcmp(operation, "remove")) {
    remove_path(path);
  } else if (!strcmp(operation, "read")) {
    read_file(path);
  } else if (!strcmp(operation, "write") && count == 8) {
    write_file(path, number(arguments[4]), number(arguments[5]), number(arguments[6]), *arguments[7] == '1');
  } else {
    return 2;
  }
  return fflush(stdout) ? 1 : 0;
}
