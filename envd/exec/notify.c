/* Keeps one inotify instance while there is any watch. Passes events on unchanged; envd interprets them. */
#define _GNU_SOURCE
#include "svc-exec.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

static int instance = -1;

int notify_fd(void) { return instance; }

void notify_watch(uint32_t id, struct reader *reader) {
  uint32_t mask = read_u32(reader);
  char *path = read_string(reader);
  int error = reader->broken ? EPROTO : 0, wd = -1;
  if (error == 0 && instance < 0 && (instance = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) < 0) error = errno;
  if (error == 0 && (wd = inotify_add_watch(instance, path, mask)) < 0) error = errno;
  answer_start(ANSWER_REPLY, id);
  answer_u32((uint32_t)error);
  answer_u32((uint32_t)wd);
  answer_send();
}

void notify_unwatch(uint32_t id, struct reader *reader) {
  int wd = (int)read_u32(reader);
  int error = 0;
  if (instance < 0 || inotify_rm_watch(instance, wd) < 0) error = instance < 0 ? EBADF : errno;
  reply(id, error);
}

void notify_close(void) {
  if (instance >= 0) close(instance);
  instance = -1;
}

void notify_drain(void) {
  char events[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
  while (instance >= 0) {
    ssize_t got = read(instance, events, sizeof events);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    for (char *at = events; at < events + got;) {
      const struct inotify_event *event = (const struct inotify_event *)(void *)at;
      answer_start(ANSWER_NOTIFY, 0);
      answer_u32((uint32_t)event->wd);
      answer_u32(event->mask);
      answer_bytes(event->name, event->len > 0 ? strnlen(event->name, event->len) : 0);
      answer_send();
      at += sizeof *event + event->len;
    }
  }
}
