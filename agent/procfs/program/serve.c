/* Speaks FUSE with the kernel, without libfuse. A new server takes over the connection of the one before it; libfuse
 * would wait for the first message of a connection, which the kernel sends once.
 *
 * The root has the file `alive` and, under any container's id, a directory with the files of that container. Containers
 * have the same files under nodes of their own, because the kernel ties locks and watches to a node: a sandbox cannot hold
 * or watch a file of another one. Every open asks for direct I/O, so that the kernel passes on every read. Every read makes
 * the whole text and sends the part at its offset: the server keeps nothing between two requests. */

#define _GNU_SOURCE
#include "serve.h"
#include "container.h"
#include "files.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
  REQUEST_BYTES = 1 << 17,
  LONGEST_TEXT = 1 << 20,
  /* A request that takes longer kills the server; a new one starts. Seconds. */
  LONGEST_ANSWER = 2,
  /* A node is the beginning of the container's id, 0 for the root, and a byte for the file in its directory. */
  OF_ID = 13,
  FILE_BITS = 8,
  DIRECTORY = FUSE_ROOT_ID,
  FIRST_FILE = 2,
};

/* Names and attributes never change. */
static const uint64_t FOREVER = 365ULL * 24 * 3600;

static int connection;
static struct shared *shared;
static const char *version;

static void reply(uint64_t request, int error, const void *data, size_t length) {
  struct fuse_out_header header = {
    .len = (uint32_t)(sizeof header + length), .error = -error, .unique = request };
  struct iovec parts[] = { { &header, sizeof header }, { (void *)data, length } };
  // ENOENT: the reader was killed meanwhile.
  ssize_t written = writev(connection, parts, 2);
  (void)written;
}

static uint64_t container_part(uint64_t node) { return node >> FILE_BITS; }
static int file_part(uint64_t node) { return (int)(node & ((1 << FILE_BITS) - 1)); }
static int is_directory(uint64_t node) { return file_part(node) == DIRECTORY; }
static int file_of(uint64_t node) { return file_part(node) - FIRST_FILE; }

static struct fuse_attr attributes(uint64_t node) {
  return (struct fuse_attr){
    .ino = node,
    // The files have size 0, as in /proc. CRIU compares the size when it opens a file again.
    .mode = is_directory(node) ? S_IFDIR | 0555 : S_IFREG | 0444,
    .nlink = is_directory(node) ? 2 : 1,
    .blksize = 4096,
  };
}

/* The node of a container's directory; 0 if this is no container's id. */
static uint64_t directory_named(const char *id) {
  char beginning[OF_ID + 1] = "";
  if (strlen(id) != ID_LENGTH || id[strspn(id, "0123456789abcdef")]) return 0;
  memcpy(beginning, id, OF_ID);
  uint64_t container = strtoull(beginning, NULL, 16);
  return container ? container << FILE_BITS | DIRECTORY : 0;
}

static void look_up(const struct fuse_in_header *in, const char *name) {
  int file = file_named(name), is_root = in->nodeid == FUSE_ROOT_ID;
  uint64_t node = is_root ? directory_named(name) : 0;
  if (is_directory(in->nodeid) && file >= 0 && is_root == is_alive(file))
    node = container_part(in->nodeid) << FILE_BITS | (uint64_t)(file + FIRST_FILE);
  if (!node) return reply(in->unique, ENOENT, NULL, 0);
  struct fuse_entry_out entry = {
    .nodeid = node, .entry_valid = FOREVER, .attr_valid = FOREVER, .attr = attributes(node) };
  reply(in->unique, 0, &entry, sizeof entry);
}

static void read_file(const struct fuse_in_header *in, const struct fuse_read_in *asked) {
  static char text[LONGEST_TEXT];
  if (is_directory(in->nodeid)) return reply(in->unique, EISDIR, NULL, 0);
  FILE *out = fmemopen(text, sizeof text, "w");
  if (!out) return reply(in->unique, ENOMEM, NULL, 0);
  int error = write_file(file_of(in->nodeid), (int)in->pid, out);
  if (!error && is_alive(file_of(in->nodeid)))
    fprintf(out, "%s %u\n", version, shared->starts);
  long length = ftell(out);
  if (fclose(out) || length < 0) error = EIO;
  if (error) return reply(in->unique, error, NULL, 0);
  size_t from = asked->offset > (uint64_t)length ? (size_t)length : (size_t)asked->offset;
  size_t rest = (size_t)length - from;
  reply(in->unique, 0, text + from, rest > asked->size ? asked->size : rest);
}

static void begin(const struct fuse_in_header *in, const struct fuse_init_in *offered) {
  struct fuse_init_out out = {
    .major = FUSE_KERNEL_VERSION,
    .minor = FUSE_KERNEL_MINOR_VERSION,
    .max_readahead = offered->max_readahead,
    .max_background = 16,
    .congestion_threshold = 12,
    .max_write = 4096,
    .time_gran = 1,
  };
  reply(in->unique, 0, &out, sizeof out);
}

static void answer(const struct fuse_in_header *in, const void *body) {
  switch (in->opcode) {
    case FUSE_INIT: return begin(in, body);
    case FUSE_LOOKUP: return look_up(in, body);
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT: return;
    case FUSE_GETATTR: {
      struct fuse_attr_out out = { .attr_valid = FOREVER, .attr = attributes(in->nodeid) };
      return reply(in->unique, 0, &out, sizeof out);
    }
    case FUSE_OPEN: {
      const struct fuse_open_in *asked = body;
      struct fuse_open_out out = { .open_flags = FOPEN_DIRECT_IO };
      if ((asked->flags & 3) != 0) return reply(in->unique, EACCES, NULL, 0);
      return reply(in->unique, 0, &out, sizeof out);
    }
    case FUSE_OPENDIR: {
      struct fuse_open_out out = { 0 };
      return reply(in->unique, 0, &out, sizeof out);
    }
    case FUSE_READ: return read_file(in, body);
    case FUSE_READDIR: return reply(in->unique, 0, NULL, 0);
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_DESTROY: return reply(in->unique, 0, NULL, 0);
    case FUSE_STATFS: {
      struct fuse_statfs_out out = { .st = { .bsize = 4096, .namelen = 255 } };
      return reply(in->unique, 0, &out, sizeof out);
    }
    // The kernel uses only the features that the server offers, and asks once.
    default: return reply(in->unique, ENOSYS, NULL, 0);
  }
}

void end_request(int to, struct shared *state) {
  connection = to;
  if (state->request) reply(state->request, EIO, NULL, 0);
  state->request = 0;
}

void serve(int from, struct shared *state, const char *own_version) {
  static char request[REQUEST_BYTES] __attribute__((aligned(8)));
  connection = from, shared = state, version = own_version;
  while (!orphaned) {
    struct pollfd waiting = { .fd = connection, .events = POLLIN };
    int found = poll(&waiting, 1, until_next_sample());
    if (found < 0 && errno != EINTR) abort();
    if (found == 0) take_samples();
    if (found <= 0) continue;
    ssize_t length = read(connection, request, sizeof request);
    if (length < 0 && errno == ENODEV) return;
    // ENOENT: the request was interrupted before it was read.
    if (length < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) continue;
    const struct fuse_in_header *in = (const void *)request;
    if (length < (ssize_t)sizeof *in || in->len != (size_t)length) abort();
    request[length < REQUEST_BYTES ? length : REQUEST_BYTES - 1] = 0;
    shared->request = in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET ? 0 : in->unique;
    alarm(LONGEST_ANSWER);
    answer(in, request + sizeof *in);
    alarm(0);
    shared->request = 0;
  }
}
