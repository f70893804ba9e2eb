/* The extended attributes that hold file metadata. Only user.e2b.* and user.svc.* are ever read or written. */
#define _GNU_SOURCE
#include "svc-exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define LONGEST_VALUE 4096

static char names[65536];

static int ours(const char *name) {
  return strncmp(name, "user.e2b.", 9) == 0 || strncmp(name, "user.svc.", 9) == 0;
}

/* Fills `names`. Returns 0 if there are none or the file system has no attributes. */
static size_t list(const char *path) {
  ssize_t size = listxattr(path, names, sizeof names);
  return size > 0 ? (size_t)size : 0;
}

void attributes_get(uint32_t id, struct reader *reader) {
  uint32_t count = read_u32(reader);
  answer_start(ANSWER_REPLY, id);
  answer_u32(0);
  for (uint32_t i = 0; i < count && !reader->broken; i++) {
    const char *path = read_string(reader);
    size_t size = reader->broken ? 0 : list(path);
    for (char *name = names; name < names + size; name += strlen(name) + 1) {
      char value[LONGEST_VALUE];
      if (!ours(name)) continue;
      ssize_t length = getxattr(path, name, value, sizeof value);
      if (length < 0) continue;
      answer_u8(1);
      answer_bytes(name, strlen(name));
      answer_bytes(value, (size_t)length);
    }
    answer_u8(0);
  }
  answer_send();
}

static int wanted(char **pairs, const char *name) {
  for (; *pairs != NULL; pairs += 2)
    if (strcmp(*pairs, name) == 0) return 1;
  return 0;
}

static int set(const char *path, const char *name, const char *value) {
  char present[LONGEST_VALUE];
  size_t length = strlen(value);
  ssize_t have = getxattr(path, name, present, sizeof present);
  /* Skips a write that changes nothing, because it would cause an event in every watch of the directory. */
  if (have == (ssize_t)length && memcmp(present, value, length) == 0) return 0;
  return setxattr(path, name, value, length, 0) < 0 ? errno : 0;
}

void attributes_set(uint32_t id, struct reader *reader) {
  const char *path = read_string(reader);
  char **pairs = read_strings(reader);
  int error = 0;
  if (pairs == NULL) {
    reply(id, EPROTO);
    return;
  }
  size_t size = list(path), count = 0;
  for (char *name = names; name < names + size; name += strlen(name) + 1)
    if (ours(name) && !wanted(pairs, name) && removexattr(path, name) < 0 && errno != ENODATA) error = errno;
  while (pairs[count] != NULL) count++;
  for (size_t i = 0; i + 1 < count && error == 0; i += 2) error = set(path, pairs[i], pairs[i + 1]);
  free(pairs);
  reply(id, error);
}
