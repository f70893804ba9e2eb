/* Lines in the log of a dump. runc asks CRIU for all of them, and CRIU writes each by a call of its own: three for every piece of memory
 * that lies together, tens of thousands for a browser. This file changes the request: those for the search of faults in CRIU stay out,
 * and those that agent/snapshots/criu/dump-log.ts reads stay. A restore keeps them all, because svc-runc reads some. */

#define _GNU_SOURCE
#include "../criu-walk.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Fields of criu_req and criu_opts in CRIU's rpc.proto, and two of its levels; the last bits are how a field is stored. */
enum { TYPE = 1 << 3, OPTIONS = 2 << 3 | 2, LOG_LEVEL = 9 << 3, DUMP = 1, INFO = 3, DEBUG = 4 };

struct part {
  unsigned char *at, *end;
};

/* Reads a number and moves on. Returns 0 if there is none. */
static int take_number(struct part *from, unsigned long *number) {
  *number = 0;
  for (int shift = 0; from->at < from->end && shift < 64; shift += 7) {
    unsigned char byte = *from->at++;
    *number |= (unsigned long)(byte & 127) << shift;
    if (byte < 128) return 1;
  }
  return 0;
}

/* Reads a field and moves on. Returns 0 at the end, and for what is no message. */
static int take_field(struct part *from, unsigned long *key, struct part *value) {
  unsigned long size = 0;
  if (!take_number(from, key)) return 0;
  value->at = from->at;
  switch (*key & 7) {
    case 0: {
      unsigned long number;
      if (!take_number(from, &number)) return 0;
      value->end = from->at;
      return 1;
    }
    case 1: size = 8; break;
    case 5: size = 4; break;
    case 2:
      if (!take_number(from, &size)) return 0;
      value->at = from->at;
      break;
    default: return 0;
  }
  if (size > (unsigned long)(from->end - from->at)) return 0;
  value->end = from->at += size;
  return 1;
}

/* Returns the one byte of this field's number; NULL without it. */
static unsigned char *small_number(struct part in, unsigned long wanted) {
  unsigned long key;
  struct part value;
  while (take_field(&in, &key, &value))
    if (key == wanted && value.end - value.at == 1) return value.at;
  return NULL;
}

static void ask_for_less(struct part request) {
  unsigned char *type = small_number(request, TYPE);
  unsigned long key;
  struct part options;
  if (!type || *type != DUMP) return;
  while (take_field(&request, &key, &options)) {
    unsigned char *level = key == OPTIONS ? small_number(options, LOG_LEVEL) : NULL;
    if (level && *level == DEBUG) *level = INFO;
  }
}

EXPORTED ssize_t recv(int socket, void *buffer, size_t size, int flags) {
  ssize_t length = syscall(SYS_recvfrom, socket, buffer, size, flags, NULL, NULL);
  // Only requests are received with this flag alone.
  if (flags == MSG_TRUNC && length > 0 && (size_t)length <= size)
    ask_for_less((struct part){ buffer, (unsigned char *)buffer + length });
  return length;
}
