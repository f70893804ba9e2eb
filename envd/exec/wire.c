/* Frames on the control socket: reading a request with bounds checked, putting an answer together, sending it whole. */
#include "svc-exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST_FRAME (16u << 20)

static char *out;
static size_t out_size, out_room;

uint32_t read_u32(struct reader *reader) {
  uint32_t value = 0;
  if (reader->end - reader->at < 4) {
    reader->broken = 1;
    return 0;
  }
  memcpy(&value, reader->at, 4);
  reader->at += 4;
  return value;
}

char *read_string(struct reader *reader) {
  uint32_t length = read_u32(reader);
  char *text = reader->at;
  if ((size_t)(reader->end - reader->at) <= length || text[length] != 0) {
    reader->broken = 1;
    return (char *)"";
  }
  reader->at += (size_t)length + 1;
  return text;
}

char **read_strings(struct reader *reader) {
  uint32_t count = read_u32(reader);
  /* Every string takes five bytes at least, so a wrong count cannot reserve more memory than the frame's size allows. */
  if (count > (size_t)(reader->end - reader->at) / 5) {
    reader->broken = 1;
    return NULL;
  }
  char **strings = calloc((size_t)count + 1, sizeof *strings);
  if (strings == NULL) {
    reader->broken = 1;
    return NULL;
  }
  for (uint32_t i = 0; i < count; i++) strings[i] = read_string(reader);
  if (reader->broken) {
    free(strings);
    return NULL;
  }
  return strings;
}

static void put(const void *bytes, size_t length) {
  if (out_size + length > out_room) {
    size_t room = out_room ? out_room : 4096;
    while (room < out_size + length) room *= 2;
    char *grown = realloc(out, room);
    if (grown == NULL) _exit(70); /* envd sees the socket close and reports it */
    out = grown;
    out_room = room;
  }
  memcpy(out + out_size, bytes, length);
  out_size += length;
}

void answer_start(uint8_t kind, uint32_t id) {
  uint32_t later = 0;
  out_size = 0;
  put(&later, 4);
  put(&kind, 1);
  put(&id, 4);
}

void answer_u8(uint8_t value) { put(&value, 1); }
void answer_u32(uint32_t value) { put(&value, 4); }
void answer_bytes(const char *bytes, size_t length) {
  answer_u32((uint32_t)length);
  put(bytes, length);
}

void answer_send(void) {
  uint32_t size = (uint32_t)(out_size - 4);
  memcpy(out, &size, 4);
  for (size_t sent = 0; sent < out_size;) {
    ssize_t wrote = write(CONTROL_FD, out + sent, out_size - sent);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) _exit(0);
    sent += (size_t)wrote;
  }
  /* Frees the buffer of a large answer, which would otherwise stay allocated as long as the sandbox lives. */
  if (out_room > 65536) {
    free(out);
    out = NULL;
    out_room = 0;
  }
}

void reply(uint32_t id, int error) {
  answer_start(ANSWER_REPLY, id);
  answer_u32((uint32_t)error);
  answer_send();
}

static int receive(void *into, size_t size) {
  for (size_t have = 0; have < size;) {
    ssize_t got = read(CONTROL_FD, (char *)into + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    have += (size_t)got;
  }
  return 1;
}

char *receive_frame(uint32_t *size) {
  if (!receive(size, 4) || *size < 5 || *size > LARGEST_FRAME) return NULL;
  char *frame = malloc(*size);
  if (frame == NULL || !receive(frame, *size)) {
    free(frame);
    return NULL;
  }
  return frame;
}
