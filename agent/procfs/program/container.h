/* Facts about the container of a process, from the kernel. */

#ifndef SVC_CONTAINER_H
#define SVC_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

enum { ID_LENGTH = 64, MOST_CPUS = 4096 };

struct memory {
  /* Bytes. */
  uint64_t limit, used, cache, anonymous, shared, mapped, dirty, writeback;
  uint64_t active_anonymous, inactive_anonymous, active_file, inactive_file, unevictable, reclaimable;
};

/* Nanoseconds of processor time since the container's start. */
struct processor {
  uint64_t used, user, system;
};

struct container {
  char id[ID_LENGTH + 1];
  /* Directories of its cgroups; all the same with cgroups v2. */
  char memory[512], cpu[512], accounting[512], cpuset[512], pids[512];
  int unified;
  /* Its first process, and when that started in nanoseconds of the machine's uptime. */
  long first;
  uint64_t started;
  /* Of the load: when it was sampled, the processor time then, and the averages. */
  uint64_t sampled, used;
  double load[3];
};

/* The container of this process or thread; NULL when it is in none. Stays valid until the next call. */
struct container *container_of(int process);

struct memory memory_of(const struct container *one);
struct processor processor_of(const struct container *one);
/* Marks the processors that it may use at once, and returns their number. */
int cpus_of(const struct container *one, unsigned char cpus[MOST_CPUS]);
/* Number of its threads. */
uint64_t threads_of(const struct container *one);

/* Nanoseconds of the machine's uptime. */
uint64_t uptime_ns(void);

int until_next_sample(void);
void take_samples(void);

/* Reads a file, at most size - 1 bytes, and ends it with a 0. Returns the length, or -1. */
long read_text(const char *path, char *text, size_t size);

#endif
