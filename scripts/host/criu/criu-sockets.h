/* Names of bound Unix sockets during a dump, see criu-sockets.c. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Call with what a link of /proc/self/fd says: `length` bytes of `text`, which has room for `size`. Returns the new length. */
ssize_t sockets_link(const char *path, char *text, size_t size, ssize_t length);
