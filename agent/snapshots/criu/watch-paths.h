/* A watched file, and where its path is looked for. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

struct watched {
  /* As the kernel counts: major << 20 | minor. */
  unsigned device;
  unsigned type;
  unsigned size;
  unsigned long inode;
  unsigned char handle[128];
  /* Within the sandbox; NULL: CRIU opens the file by its handle. Not compared. */
  char *path;
};

struct pids {
  long *ids;
  size_t count;
};

/* Fills in the paths, as far as CRIU needs them. `pid`: the first process of the container. */
void find_paths(long pid, struct pids pids, struct watched *watched, size_t count);

/* Ends the program with the reason of errno. */
_Noreturn void give_up(const char *what);
