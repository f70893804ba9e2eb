/* Finds the path of a watched file in the root of a sandbox: by the handle of the file in its layer, by mounts, by what processes
 * have open, and only then by a walk, of the writable layer or of one file system of the kernel. A file without a name gets a stand-in
 * that no sandbox can make, for which criu-paths.c answers. */

#define _GNU_SOURCE
#include "watch-paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

/* A part of a path is 255 bytes at most. The same name is in scripts/host/criu/criu-paths.c. */
#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define GONE "/svc-gone-" X50 X50 X50 X50 X50 "/"
/* struct ovl_fh of the kernel: three bytes so that the rest is aligned, then struct ovl_fb. */
enum { OVERLAY_TYPE = 0xf8, AT_VERSION = 3, AT_MAGIC = 4, AT_LENGTH = 5, AT_FLAGS = 6, AT_TYPE = 7, AT_REAL = 24 };
enum { OVERLAY_MAGIC = 0xfb, OF_UPPER_LAYER = 4, MOST_LAYERS = 512, MOST_WALKED = 300000 };

struct layer {
  char *path;
  int directory;
};

struct mount {
  unsigned device;
  char *place;
  struct mount *next;
};

static int root;
static struct layer upper = { NULL, -1 }, lowers[MOST_LAYERS];
static int lower_count;
static struct mount *mounts;
static unsigned root_device;

_Noreturn void give_up(const char *what) {
  fprintf(stderr, "svc-watch-paths: %s: %s\n", what, strerror(errno));
  exit(1);
}

static char *copy_of(const char *text) {
  char *copy = strdup(text);
  if (!copy) give_up("memory");
  return copy;
}

/* mountinfo has blanks, tabs, line ends and backslashes as octal numbers. */
static void unescape(char *text) {
  char *to = text;
  for (; *text; text++) {
    unsigned value;
    if (*text == '\\' && sscanf(text + 1, "%3o", &value) == 1) *to++ = (char)value, text += 3;
    else *to++ = *text;
  }
  *to = 0;
}

/* Docker may name layers by a path below the directory of all layers. */
static void open_layer(struct layer *layer, const char *path, const char *above) {
  char whole[PATH_MAX];
  snprintf(whole, sizeof whole, "%s%s%s", *path == '/' ? "" : above, *path == '/' ? "" : "/", path);
  layer->path = realpath(whole, NULL);
  layer->directory = layer->path ? open(layer->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

static char *option_of(const char *options, const char *name) {
  const char *start = strstr(options, name);
  if (!start) return NULL;
  start += strlen(name);
  return strndup(start, strcspn(start, ","));
}

static void read_layers(const char *options) {
  char *up = option_of(options, "upperdir="), *low = option_of(options, "lowerdir="), *save = NULL;
  if (!up || !low) return;
  char *above = copy_of(up), *end;
  // /var/lib/docker/overlay2/ID/diff
  for (int i = 0; i < 2; i++)
    if ((end = strrchr(above, '/'))) *end = 0;
  open_layer(&upper, up, above);
  for (char *one = strtok_r(low, ":", &save); one && lower_count < MOST_LAYERS; one = strtok_r(NULL, ":", &save))
    open_layer(&lowers[lower_count++], one, above);
  free(up);
  free(low);
  free(above);
}

static void read_mounts(long pid) {
  char name[64], *line = NULL;
  size_t size = 0;
  snprintf(name, sizeof name, "/proc/%ld/mountinfo", pid);
  FILE *file = fopen(name, "re");
  if (!file) give_up(name);
  while (getline(&line, &size, file) > 0) {
    unsigned major, minor;
    char *place = NULL, *kind = strstr(line, " - "), *options;
    line[strcspn(line, "\n")] = 0;
    if (!kind || sscanf(line, "%*d %*d %u:%u %*s %ms", &major, &minor, &place) != 3) continue;
    unescape(place);
    struct mount *mount = malloc(sizeof *mount);
    if (!mount) give_up("memory");
    *mount = (struct mount){ major << 20 | minor, place, mounts };
    mounts = mount;
    if (strcmp(place, "/")) continue;
    root_device = mount->device;
    options = strstr(kind, "overlay ");
    if (!options) continue;
    unescape(options);
    read_layers(options);
  }
  free(line);
  fclose(file);
}

static int open_in_root(const char *path, unsigned long flags) {
  struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
  return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static int is(const struct watched *one, const struct stat *about) {
  return about->st_ino == one->inode && about->st_dev == makedev(one->device >> 20, one->device & 0xfffff);
}

/* Takes the path if it leads to the watched file. CRIU reads the first character as the root, and nothing behind it as no path. */
static int accept(struct watched *one, const char *path) {
  struct stat about;
  int file = *path == '/' ? open_in_root(path, O_PATH | O_NOFOLLOW) : -1;
  if (file < 0) return 0;
  int found = !fstat(file, &about) && is(one, &about);
  close(file);
  if (found) one->path = copy_of(strcmp(path, "/") ? path : "/.");
  return found;
}

static const char *below(const struct layer *layer, const char *path) {
  size_t length = layer->path ? strlen(layer->path) : 0;
  if (!length || strncmp(path, layer->path, length)) return NULL;
  return path[length] == '/' ? path + length : path[length] ? NULL : "/";
}

/* Opens a file by its handle in the file system of `directory`, and reads its path there. */
static int path_by_handle(int directory, int type, const unsigned char *bytes, unsigned size, char path[PATH_MAX]) {
  char name[64];
  union {
    struct file_handle handle;
    unsigned char room[sizeof(struct file_handle) + 128];
  } given = { .handle = { .handle_bytes = size, .handle_type = type } };
  memcpy(given.handle.f_handle, bytes, size);
  int file = directory < 0 ? -1 : open_by_handle_at(directory, &given.handle, O_PATH | O_CLOEXEC);
  if (file < 0) return 0;
  snprintf(name, sizeof name, "/proc/self/fd/%d", file);
  ssize_t length = readlink(name, path, PATH_MAX - 1);
  close(file);
  if (length <= 0) return 0;
  path[length] = 0;
  return 1;
}

static int is_overlay(const struct watched *one) {
  return one->type == OVERLAY_TYPE && one->size >= AT_REAL && one->handle[AT_MAGIC] == OVERLAY_MAGIC &&
         AT_VERSION + one->handle[AT_LENGTH] <= (int)one->size && AT_VERSION + one->handle[AT_LENGTH] >= AT_REAL;
}

static int by_layer(struct watched *one) {
  char path[PATH_MAX];
  const char *inside;
  if (!is_overlay(one)) return 0;
  unsigned size = AT_VERSION + one->handle[AT_LENGTH] - AT_REAL;
  int is_upper = one->handle[AT_FLAGS] & OF_UPPER_LAYER;
  for (int i = 0; i < (is_upper ? 1 : lower_count); i++) {
    int directory = is_upper ? upper.directory : lowers[i].directory;
    if (!path_by_handle(directory, one->handle[AT_TYPE], one->handle + AT_REAL, size, path)) continue;
    if ((inside = below(&upper, path)) && accept(one, inside)) return 1;
    for (int j = 0; j < lower_count; j++)
      if ((inside = below(&lowers[j], path)) && accept(one, inside)) return 1;
  }
  return 0;
}

static int by_mount(struct watched *one) {
  for (struct mount *mount = mounts; mount; mount = mount->next)
    if (mount->device == one->device && accept(one, mount->place)) return 1;
  return 0;
}

static int is_deleted(const char *path) {
  static const char END[] = " (deleted)";
  size_t length = strlen(path), end = sizeof END - 1;
  return length > end && !strcmp(path + length - end, END);
}

static void stand_in(struct watched *one) {
  char path[sizeof GONE + 64];
  snprintf(path, sizeof path, GONE "%x-%lx", one->device, one->inode);
  one->path = copy_of(path);
}

/* CRIU opens it by its handle, and asks for a path only if it has none. Returns whether nothing is left to do. */
static int left_to_criu(struct watched *one) {
  char path[PATH_MAX];
  if (one->type == OVERLAY_TYPE) return 0;
  for (struct mount *mount = mounts; mount; mount = mount->next) {
    if (mount->device != one->device) continue;
    int directory = open_in_root(mount->place, O_RDONLY | O_DIRECTORY);
    int opened = path_by_handle(directory, (int)one->type, one->handle, one->size, path);
    if (directory >= 0) close(directory);
    if (!opened) continue;
    if (is_deleted(path)) stand_in(one);
    return 1;
  }
  return 0;
}

/* What a process has open, stands in or runs. Returns whether it is the watched file, with or without a name. */
static int by_link(struct watched *one, int process, const char *link) {
  struct stat about;
  char path[PATH_MAX];
  if (fstatat(process, link, &about, 0) || !is(one, &about)) return 0;
  ssize_t length = readlinkat(process, link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  if (!is_deleted(path)) return accept(one, path);
  stand_in(one);
  return 1;
}

static int by_holder(struct watched *one, int process) {
  static const char *const LINKS[] = { "cwd", "root", "exe" };
  static const char *const FOLDERS[] = { "fd", "map_files" };
  for (size_t i = 0; i < sizeof LINKS / sizeof *LINKS; i++)
    if (by_link(one, process, LINKS[i])) return 1;
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
    int directory = openat(process, FOLDERS[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = directory < 0 ? NULL : fdopendir(directory);
    for (struct dirent *entry; entries && !one->path && (entry = readdir(entries));) by_link(one, dirfd(entries), entry->d_name);
    if (entries) closedir(entries);
    if (one->path) return 1;
  }
  return 0;
}

static int by_holders(struct watched *one, struct pids pids) {
  char name[64];
  for (size_t i = 0; i < pids.count && !one->path; i++) {
    snprintf(name, sizeof name, "/proc/%ld", pids.ids[i]);
    int process = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process < 0) continue;
    by_holder(one, process);
    close(process);
  }
  return one->path != NULL;
}

/* The walk under way: what it looks for, and the begin of its paths that is not the sandbox's. */
static struct watched *sought;
static size_t sought_count, walked, outside;
static const char *walked_place;

static int is_copy_of(const struct watched *one, const char *path) {
  unsigned char origin[128];
  if (!is_overlay(one)) return 0;
  ssize_t size = lgetxattr(path, "trusted.overlay.origin", origin, sizeof origin);
  return size == one->handle[AT_LENGTH] && !memcmp(origin, one->handle + AT_VERSION, (size_t)size);
}

static int visit(const char *path, const struct stat *about, int kind, struct FTW *at) {
  char inside[PATH_MAX];
  (void)kind;
  (void)at;
  if (++walked > MOST_WALKED) return 1;
  snprintf(inside, sizeof inside, "%s%s", walked_place, path + outside);
  for (size_t i = 0; i < sought_count; i++) {
    struct watched *one = &sought[i];
    if (one->path) continue;
    // In the layer a file has an inode of its own, which overlayfs may show with more bits.
    int same = is(one, about) || about->st_ino == (one->inode & 0xffffffff);
    if (same || is_copy_of(one, path)) accept(one, *inside ? inside : "/");
  }
  return 0;
}

static void walk(const char *host_path, const char *place, struct watched *watched, size_t count) {
  walked = 0;
  sought = watched;
  sought_count = count;
  outside = strlen(host_path);
  walked_place = place;
  nftw(host_path, visit, 32, FTW_PHYS | FTW_MOUNT);
}

/* /proc, /sys and the like. A mount of a directory of the host is not walked. */
static void walk_mount(long pid, struct watched *one) {
  char host_path[PATH_MAX];
  for (struct mount *mount = mounts; mount && !one->path; mount = mount->next) {
    if (mount->device != one->device || (strcmp(mount->place, "/proc") && strcmp(mount->place, "/sys"))) continue;
    snprintf(host_path, sizeof host_path, "/proc/%ld/root%s", pid, mount->place);
    walk(host_path, mount->place, one, 1);
  }
}

void find_paths(long pid, struct pids pids, struct watched *watched, size_t count) {
  char name[64];
  size_t in_layer = 0;
  snprintf(name, sizeof name, "/proc/%ld/root", pid);
  root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) give_up(name);
  read_mounts(pid);
  for (size_t i = 0; i < count; i++) {
    struct watched *one = &watched[i];
    if (by_layer(one) || by_mount(one) || left_to_criu(one) || by_holders(one, pids)) continue;
    if (one->device == root_device) in_layer++;
  }
  if (in_layer > 0 && upper.path) walk(upper.path, "", watched, count);
  for (size_t i = 0; i < count; i++) {
    struct watched *one = &watched[i];
    if (one->path || left_to_criu(one)) continue;
    walk_mount(pid, one);
    if (!one->path) stand_in(one);
  }
}
