/* Bound Unix sockets of the sandbox, see socket-names.c. */
#pragma once

/* A descriptor that is a socket of any kind. */
void add_socket(long pid, int descriptor, unsigned long inode);

/* Writes the list into the directory `work`, if a socket belongs into it. `pid`: the first process of the container. */
void write_socket_names(long pid, const char *work);
