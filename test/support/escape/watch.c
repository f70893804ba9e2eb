/* watch DIRECTORY…: prints a line for everything that is made, written, changed, removed, opened or read in the directories,
 * until its input ends: path, event, process, program. The first line names the way of watching: fanotify knows the process;
 * where a file system does not support it, inotify tells the rest. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/statfs.h>
#include <unistd.h>

#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID 0x200
#endif

enum { MOST = 1024, LONGEST_HANDLE = 128 };

static struct {
  const char *path;
  fsid_t system;
  struct file_handle handle;
  unsigned char bytes[LONGEST_HANDLE];
} watched[MOST];
static const char *by_inotify[MOST];

static const struct {
  unsigned long bit;
  const char *name;
} NAMES[] = {
  { FAN_CREATE, "created" }, { FAN_DELETE, "deleted" }, { FAN_MOVED_FROM, "moved-away" }, { FAN_MOVED_TO, "moved-here" },
  { FAN_ATTRIB, "attributes" }, { FAN_MODIFY, "written" }, { FAN_OPEN, "opened" }, { FAN_ACCESS, "read" },
  { FAN_CLOSE_WRITE, "closed-written" }, { FAN_DELETE_SELF, "deleted-itself" }, { FAN_MOVE_SELF, "moved-itself" },
  { FAN_Q_OVERFLOW, "lost-events" }, { FAN_ONDIR, "directory" },
};

static void say(const char *directory, const char *name, unsigned long mask, int process) {
  char program[PATH_MAX] = "gone", link[64];
  snprintf(link, sizeof link, "/proc/%d/exe", process);
  ssize_t length = readlink(link, program, sizeof program - 1);
  if (length >= 0) program[length] = 0;
  printf("%s/%s ", directory, name);
  const char *between = "";
  for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
    if (mask & NAMES[i].bit) printf("%s%s", between, NAMES[i].name), between = ",";
  }
  if (process) printf(" by %d %s", process, program);
  putchar('\n');
}

/* Whether fanotify accepts the directory. */
static int mark(int group, const char *path, int index) {
  unsigned long events = FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_ATTRIB | FAN_MODIFY | FAN_OPEN |
                         FAN_ACCESS | FAN_CLOSE_WRITE | FAN_DELETE_SELF | FAN_MOVE_SELF | FAN_EVENT_ON_CHILD | FAN_ONDIR;
  struct statfs about;
  int mount;
  watched[index].handle.handle_bytes = LONGEST_HANDLE;
  if (group < 0 || statfs(path, &about)) return 0;
  // A file system that cannot be exported, such as an overlay, has handles that only tell files apart.
  if (name_to_handle_at(AT_FDCWD, path, &watched[index].handle, &mount, AT_HANDLE_FID)) return 0;
  if (fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_ONLYDIR, events, AT_FDCWD, path)) return 0;
  watched[index].system = about.f_fsid;
  watched[index].path = path;
  return 1;
}

static const char *directory_of(const struct fanotify_event_info_fid *about, const struct file_handle *handle) {
  for (int i = 0; i < MOST && watched[i].path; i++) {
    const struct file_handle *one = &watched[i].handle;
    if (one->handle_bytes == handle->handle_bytes && one->handle_type == handle->handle_type &&
        !memcmp(&watched[i].system, &about->fsid, sizeof about->fsid) &&
        !memcmp(one->f_handle, handle->f_handle, handle->handle_bytes))
      return watched[i].path;
  }
  return "(unknown)";
}

static void tell_fanotify(int group) {
  char data[64 * 1024] __attribute__((aligned(8)));
  ssize_t got = read(group, data, sizeof data);
  struct fanotify_event_metadata *event = (void *)data;
  for (; FAN_EVENT_OK(event, got); event = FAN_EVENT_NEXT(event, got)) {
    struct fanotify_event_info_fid *about = (void *)(event + 1);
    if (event->event_len < sizeof *event + sizeof *about) {
      say("", "", event->mask, event->pid);
      continue;
    }
    struct file_handle *handle = (void *)about->handle;
    int named = about->hdr.info_type == FAN_EVENT_INFO_TYPE_DFID_NAME;
    const char *name = named ? (const char *)handle->f_handle + handle->handle_bytes : "";
    say(directory_of(about, handle), strcmp(name, ".") ? name : "", event->mask, event->pid);
  }
}

/* The numbers of inotify's events are the same as fanotify's. */
static void tell_inotify(int watches) {
  char data[64 * 1024] __attribute__((aligned(8)));
  ssize_t got = read(watches, data, sizeof data);
  for (char *at = data; at < data + got;) {
    struct inotify_event *event = (void *)at;
    if (event->mask & ~(unsigned)(IN_ISDIR | IN_IGNORED))
      say(event->wd < 0 ? "" : by_inotify[event->wd], event->len ? event->name : "", event->mask, 0);
    at += sizeof *event + event->len;
  }
}

int main(int count, char **arguments) {
  int group = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_UNLIMITED_QUEUE | FAN_CLOEXEC, O_RDONLY);
  int watches = inotify_init1(IN_CLOEXEC), marked = 0;
  for (int i = 1; i < count; i++) {
    if (marked == MOST) return fprintf(stderr, "more than %d directories\n", MOST), 1;
    if (mark(group, arguments[i], marked)) {
      marked++;
      continue;
    }
    int watch = inotify_add_watch(watches, arguments[i], IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVE |
                                                           IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_OPEN | IN_ACCESS);
    if (watch < 0 || watch >= MOST) return perror(arguments[i]), 1;
    by_inotify[watch] = arguments[i];
  }
  printf("watching %d directories with fanotify, %d with inotify\n", marked, count - 1 - marked);
  fflush(stdout);
  // poll leaves out a descriptor below zero.
  struct pollfd sources[] = {
    { .fd = 0, .events = POLLIN }, { .fd = group, .events = POLLIN }, { .fd = watches, .events = POLLIN },
  };
  for (;;) {
    if (poll(sources, 3, -1) < 0) return 1;
    if (sources[1].revents) tell_fanotify(group);
    if (sources[2].revents) tell_inotify(watches);
    fflush(stdout);
    if (sources[0].revents && !sources[1].revents && !sources[2].revents) return 0;
  }
}
