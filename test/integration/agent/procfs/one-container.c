/* Prints a file of svc-sizes as a container with two processors sees it; the numbers of the container are made up. */

#define _GNU_SOURCE
#include "container.h"
#include "files.h"

#include <string.h>

static struct container one;

struct container *container_of(int process) {
  (void)process;
  return &one;
}

struct memory memory_of(const struct container *of) {
  (void)of;
  return (struct memory){ .limit = 1 << 30, .used = 1 << 20 };
}

struct processor processor_of(const struct container *of) {
  (void)of;
  return (struct processor){ .used = 3000000000, .user = 2000000000, .system = 1000000000 };
}

int cpus_of(const struct container *of, unsigned char cpus[MOST_CPUS]) {
  (void)of;
  memset(cpus, 0, MOST_CPUS);
  return cpus[0] = cpus[1] = 1, 2;
}

uint64_t threads_of(const struct container *of) {
  (void)of;
  return 3;
}

uint64_t uptime_ns(void) { return 100000000000; }

long read_text(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "r");
  if (!file) return -1;
  size_t length = fread(text, 1, size - 1, file);
  fclose(file);
  text[length] = 0;
  return (long)length;
}

int main(int count, char **names) { return count == 2 ? write_file(file_named(names[1]), 1, stdout) : 64; }
