/* The text of each file, in the formats of the kernel. */

#define _GNU_SOURCE
#include "files.h"
#include "container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_MACHINE_FILE = 1 << 20 };

/* The machine's own file. Refreshed once a second at most: on large machines /proc/cpuinfo takes milliseconds. */
static const char *machine_file(const char *path) {
  static struct {
    const char *path;
    uint64_t at;
    char *text;
  } kept[4];
  uint64_t now = uptime_ns();
  for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
    if (kept[i].path && strcmp(kept[i].path, path)) continue;
    if (kept[i].path && now - kept[i].at < 1000000000) return kept[i].text;
    if (!kept[i].text && !(kept[i].text = malloc(LONGEST_MACHINE_FILE))) abort();
    if (read_text(path, kept[i].text, LONGEST_MACHINE_FILE) < 0) return NULL;
    kept[i].path = path, kept[i].at = now;
    return kept[i].text;
  }
  abort();
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t minus(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }
static uint64_t age_of(const struct container *one) { return minus(uptime_ns(), one->started ? one->started : uptime_ns()); }

/* Writes the machine's lines in their order with the container's numbers, and 0 where the server does not know the number. */
static int meminfo(const struct container *one, int reader, FILE *out) {
  (void)reader;
  const char *machine = machine_file("/proc/meminfo");
  const char *first = machine ? strstr(machine, "MemTotal:") : NULL;
  if (!first) return EIO;
  struct memory all = memory_of(one);
  uint64_t total = least(all.limit, strtoull(first + 9, NULL, 10) * 1024), free_bytes = minus(total, all.used);
  uint64_t file_pages = all.active_file + all.inactive_file;
  const struct {
    const char *name;
    uint64_t bytes;
  } values[] = {
    { "MemTotal", total },
    { "MemFree", free_bytes },
    { "MemAvailable", least(total, free_bytes + file_pages + all.reclaimable) },
    { "Cached", all.cache },
    { "Active", all.active_anonymous + all.active_file },
    { "Inactive", all.inactive_anonymous + all.inactive_file },
    { "Active(anon)", all.active_anonymous },
    { "Inactive(anon)", all.inactive_anonymous },
    { "Active(file)", all.active_file },
    { "Inactive(file)", all.inactive_file },
    { "Unevictable", all.unevictable },
    { "Dirty", all.dirty },
    { "Writeback", all.writeback },
    { "AnonPages", all.anonymous },
    { "Mapped", all.mapped },
    { "Shmem", all.shared },
    { "KReclaimable", all.reclaimable },
    { "SReclaimable", all.reclaimable },
    { "Slab", all.reclaimable },
    { "CommitLimit", total },
    { "Committed_AS", all.anonymous + all.shared },
  };
  for (const char *line = machine; *line;) {
    size_t length = strcspn(line, "\n"), name = strcspn(line, ":");
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
      if (strlen(values[i].name) == name && !strncmp(values[i].name, line, name)) bytes = values[i].bytes;
    int constant = !strncmp(line, "Vmalloc", 7) ? !strncmp(line, "VmallocTotal", 12) : !strncmp(line, "Hugepagesize", 12);
    if (constant) {
      fprintf(out, "%.*s\n", (int)length, line);
    } else {
      int width = (int)(17 - least(16, name));
      const char *unit = memmem(line, length, " kB", 3) ? " kB" : "";
      fprintf(out, "%.*s%*lu%s\n", (int)name + 1, line, width + 7, *unit ? bytes / 1024 : bytes, unit);
    }
    line += length + (line[length] == '\n');
  }
  return 0;
}

/* The processors that it may use, with their numbers on the machine, as the kernel shows processors that are online. */
static int cpuinfo(const struct container *one, int reader, FILE *out) {
  (void)reader;
  unsigned char cpus[MOST_CPUS];
  int number = cpus_of(one, cpus), shown = 1;
  const char *line = machine_file("/proc/cpuinfo");
  if (!line) return EIO;
  while (*line) {
    size_t length = strcspn(line, "\n"), name = strcspn(line, "\t:");
    unsigned long cpu;
    if (sscanf(line, "processor : %lu", &cpu) == 1) shown = cpu < MOST_CPUS && cpus[cpu];
    if (shown && ((name == 8 && !strncmp(line, "siblings", 8)) || (name == 9 && !strncmp(line, "cpu cores", 9))))
      fprintf(out, "%.*s\t: %d\n", (int)name, line, number);
    else if (shown)
      fprintf(out, "%.*s\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
  return 0;
}

/* Seconds by which the clock since the machine's start is ahead for this process, rounded up so that no start is in the
 * future. A restore gives the processes a time namespace in which that clock goes on from the dump, and the kernel shows
 * start times by the reader's clock. */
static long ahead(int reader) {
  char path[64], text[256];
  long seconds, nanoseconds;
  snprintf(path, sizeof path, "/proc/%d/timens_offsets", reader);
  const char *line = read_text(path, text, sizeof text) > 0 ? strstr(text, "boottime") : NULL;
  if (!line || sscanf(line, "boottime %ld %ld", &seconds, &nanoseconds) != 2) return 0;
  return seconds + (nanoseconds > 0);
}

/* Processor time is divided evenly: the kernel's counters of a container do not say what is idle on which processor. */
static int stat(const struct container *one, int reader, FILE *out) {
  unsigned char cpus[MOST_CPUS];
  uint64_t number = (uint64_t)cpus_of(one, cpus), tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
  struct processor time = processor_of(one);
  uint64_t user = time.user / tick, system = time.system / tick;
  uint64_t idle = minus(age_of(one) * number, time.user + time.system) / tick;
  const char *machine = machine_file("/proc/stat"), *booted = machine ? strstr(machine, "btime ") : NULL;
  if (!number || !booted) return EIO;
  fprintf(out, "cpu  %lu 0 %lu %lu 0 0 0 0 0 0\n", user, system, idle);
  for (int cpu = 0; cpu < MOST_CPUS; cpu++)
    if (cpus[cpu])
      fprintf(out, "cpu%d %lu 0 %lu %lu 0 0 0 0 0 0\n", cpu, user / number, system / number, idle / number);
  // Programs add a process's start, which counts from the machine's, to btime.
  fprintf(out, "intr 0\nctxt 0\nbtime %ld\nprocesses %lu\nprocs_running 1\nprocs_blocked 0\n"
          "softirq 0 0 0 0 0 0 0 0 0 0 0\n",
          strtol(booted + 6, NULL, 10) - ahead(reader), threads_of(one));
  return 0;
}

static int uptime(const struct container *one, int reader, FILE *out) {
  (void)reader;
  unsigned char cpus[MOST_CPUS];
  uint64_t age = age_of(one), number = (uint64_t)cpus_of(one, cpus), idle = minus(age * number, processor_of(one).used);
  fprintf(out, "%.2f %.2f\n", (double)age / 1e9, (double)idle / 1e9);
  return 0;
}

static int loadavg(const struct container *one, int reader, FILE *out) {
  (void)reader;
  uint64_t threads = threads_of(one);
  fprintf(out, "%.2f %.2f %.2f 1/%lu %lu\n", one->load[0], one->load[1], one->load[2], threads, threads);
  return 0;
}

static int swaps(const struct container *one, int reader, FILE *out) {
  (void)one, (void)reader;
  fputs("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n", out);
  return 0;
}

static int online(const struct container *one, int reader, FILE *out) {
  (void)reader;
  unsigned char cpus[MOST_CPUS];
  const char *between = "";
  cpus_of(one, cpus);
  for (int first = 0; first < MOST_CPUS; first++) {
    if (!cpus[first]) continue;
    int last = first;
    while (last + 1 < MOST_CPUS && cpus[last + 1]) last++;
    fprintf(out, first == last ? "%s%d" : "%s%d-%d", between, first, last);
    between = ",", first = last;
  }
  fputc('\n', out);
  return 0;
}

static const struct {
  const char *name;
  int (*write)(const struct container *, int, FILE *);
  const char *machine;
} FILES[] = {
  { "meminfo", meminfo, "/proc/meminfo" },
  { "cpuinfo", cpuinfo, "/proc/cpuinfo" },
  { "stat", stat, "/proc/stat" },
  { "uptime", uptime, "/proc/uptime" },
  { "loadavg", loadavg, "/proc/loadavg" },
  { "swaps", swaps, "/proc/swaps" },
  { "online", online, "/sys/devices/system/cpu/online" },
  // serve.c adds what it says.
  { "alive", NULL, NULL },
};
enum { NUMBER = sizeof FILES / sizeof FILES[0] };

int file_named(const char *name) {
  for (int i = 0; i < NUMBER; i++)
    if (!strcmp(FILES[i].name, name)) return i;
  return -1;
}

int is_alive(int file) { return file >= 0 && file < NUMBER && !FILES[file].write; }

int write_file(int file, int reader, FILE *out) {
  if (file < 0 || file >= NUMBER) return ENOENT;
  if (!FILES[file].write) return 0;
  // A number of 0 is a process of which this program's process namespace knows nothing.
  if (reader <= 0) return EIO;
  const struct container *one = container_of(reader);
  if (one) return FILES[file].write(one, reader, out);
  static char text[LONGEST_MACHINE_FILE];
  long length = read_text(FILES[file].machine, text, sizeof text);
  return length < 0 || fwrite(text, 1, (size_t)length, out) != (size_t)length ? EIO : 0;
}
