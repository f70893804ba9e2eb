/* Which container a process is in, and what that container may use and uses. The process says nothing about itself: the
 * kernel names its cgroup, and a sandbox cannot leave or change its cgroups. */

#define _GNU_SOURCE
#include "container.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"

long read_text(const char *path, char *text, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  size_t length = 0;
  ssize_t got;
  while (length < size - 1 && (got = read(file, text + length, size - 1 - length)) > 0) length += (size_t)got;
  close(file);
  text[length] = 0;
  return (long)length;
}

uint64_t uptime_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t number(const char *directory, const char *name, uint64_t otherwise) {
  char path[640], text[64];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  if (read_text(path, text, sizeof text) <= 0 || !isdigit((unsigned char)*text)) return otherwise;
  return strtoull(text, NULL, 10);
}

/* The number after `name ` at the start of a line; 0 when there is none. */
static uint64_t field(const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
    if (!strncmp(line, name, length) && line[length] == ' ') return strtoull(line + length + 1, NULL, 10);
  return 0;
}

/* Finds the first 64 hexadecimal digits in a path, which name a container, and returns the end of their component. */
static const char *find_id(const char *path, const char **id) {
  for (const char *at = path; *at && *at != '\n'; at++) {
    size_t digits = strspn(at, "0123456789abcdef");
    if (digits == ID_LENGTH) return *id = at, at + strcspn(at, "/\n");
    if (digits) at += digits - 1;
  }
  return NULL;
}

static void keep(char *place, size_t size, const char *controller, const char *path, int length) {
  snprintf(place, size, "%s%s%s%.*s", ROOT, *controller ? "/" : "", controller, length, path);
}

/* Fills in the cgroups from /proc/PID/cgroup, whose lines are `number:controllers:path`. */
static int find_cgroups(const char *text, struct container *one) {
  int unified = access(ROOT "/cgroup.controllers", F_OK) == 0;
  one->unified = unified;
  for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
    const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL, *id;
    if (!path) continue;
    const char *end = find_id(++path, &id);
    if (!end) continue;
    if (*one->id && strncmp(one->id, id, ID_LENGTH)) return 0;
    memcpy(one->id, id, ID_LENGTH);
    int length = (int)(end - path);
    char *places[] = { one->memory, one->cpu, one->accounting, one->cpuset, one->pids };
    static const char *const owners[] = { "memory", "cpu", "cpuacct", "cpuset", "pids" };
    char list[256];
    snprintf(list, sizeof list, ",%.*s,", (int)(path - 1 - (names + 1)), names + 1);
    for (int i = 0; i < 5; i++) {
      char wanted[32];
      snprintf(wanted, sizeof wanted, ",%s,", owners[i]);
      if (unified ? !strcmp(list, ",,") : strstr(list, wanted) != NULL)
        keep(places[i], sizeof one->memory, unified ? "" : owners[i], path, length);
    }
  }
  return *one->memory && *one->cpu && *one->accounting && *one->cpuset;
}

/* When a process started, field 22 of its stat; 0 when it is gone, or dead and not reaped. */
static uint64_t start_of(long process) {
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/%ld/stat", process);
  if (process <= 0 || read_text(path, text, sizeof text) <= 0) return 0;
  // The name in brackets may hold anything, so fields count from the last bracket, behind which is the third.
  char *at = strrchr(text, ')');
  if (at && at[1] && strchr("ZX", at[2])) return 0;
  for (int i = 2; at && i < 22; i++) at = strchr(at + 1, ' ');
  return at ? strtoull(at + 1, NULL, 10) * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK)) : 0;
}

/* Finds the first process: the one that is number 1 inside. A paused container has another one when it goes on. */
static void find_first(struct container *one) {
  char path[640], list[65536], text[4096];
  if (one->started && start_of(one->first) == one->started) return;
  one->started = 0;
  snprintf(path, sizeof path, "%s/cgroup.procs", one->memory);
  if (read_text(path, list, sizeof list) <= 0) return;
  for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n")) {
    snprintf(path, sizeof path, "/proc/%ld/status", atol(line));
    if (read_text(path, text, sizeof text) <= 0) continue;
    char *inside = strstr(text, "\nNSpid:");
    if (!inside) continue;
    inside += strlen("\nNSpid:");
    char *end = strchr(inside, '\n');
    if (!end || end - inside < 2 || end[-1] != '1' || !isspace((unsigned char)end[-2])) continue;
    one->first = atol(line);
    one->started = start_of(one->first);
    return;
  }
}

/* Containers whose files were read, most recent first. */
enum { MOST = 2048 };
static struct container *known[MOST];
static int count;

struct container *container_of(int process) {
  char path[64], text[8192];
  struct container found = { 0 };
  snprintf(path, sizeof path, "/proc/%d/cgroup", process);
  if (process <= 0 || read_text(path, text, sizeof text) <= 0 || !find_cgroups(text, &found)) return NULL;
  int at = 0;
  while (at < count && strcmp(known[at]->id, found.id)) at++;
  struct container *one;
  if (at < count) {
    one = known[at];
  } else {
    one = count < MOST ? malloc(sizeof *one) : known[at = count - 1];
    if (!one) abort();
    *one = found;
    if (count < MOST) count++;
  }
  memmove(known + 1, known, (size_t)at * sizeof known[0]);
  known[0] = one;
  find_first(one);
  return one;
}

struct memory memory_of(const struct container *one) {
  char path[640], stat[8192] = "";
  snprintf(path, sizeof path, "%s/memory.stat", one->memory);
  read_text(path, stat, sizeof stat);
  int v2 = one->unified;
  struct memory all = {
    .limit = v2 ? number(one->memory, "memory.max", UINT64_MAX) : field(stat, "hierarchical_memory_limit"),
    .used = number(one->memory, v2 ? "memory.current" : "memory.usage_in_bytes", 0),
    .cache = field(stat, v2 ? "file" : "total_cache"),
    .anonymous = field(stat, v2 ? "anon" : "total_rss"),
    .shared = field(stat, v2 ? "shmem" : "total_shmem"),
    .mapped = field(stat, v2 ? "file_mapped" : "total_mapped_file"),
    .dirty = field(stat, v2 ? "file_dirty" : "total_dirty"),
    .writeback = field(stat, v2 ? "file_writeback" : "total_writeback"),
    .active_anonymous = field(stat, v2 ? "active_anon" : "total_active_anon"),
    .inactive_anonymous = field(stat, v2 ? "inactive_anon" : "total_inactive_anon"),
    .active_file = field(stat, v2 ? "active_file" : "total_active_file"),
    .inactive_file = field(stat, v2 ? "inactive_file" : "total_inactive_file"),
    .unevictable = field(stat, v2 ? "unevictable" : "total_unevictable"),
    .reclaimable = v2 ? field(stat, "slab_reclaimable") : 0,
  };
  return all;
}

struct processor processor_of(const struct container *one) {
  char path[640], stat[4096] = "";
  snprintf(path, sizeof path, "%s/%s", one->accounting, one->unified ? "cpu.stat" : "cpuacct.stat");
  read_text(path, stat, sizeof stat);
  if (one->unified)
    return (struct processor){ field(stat, "usage_usec") * 1000, field(stat, "user_usec") * 1000, field(stat, "system_usec") * 1000 };
  uint64_t tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
  return (struct processor){ number(one->accounting, "cpuacct.usage", 0), field(stat, "user") * tick, field(stat, "system") * tick };
}

uint64_t threads_of(const struct container *one) { return number(one->pids, "pids.current", 1); }

/* The number of processors that the quota allows, rounded up; INT_MAX without a quota. */
static uint64_t quota_of(const struct container *one) {
  uint64_t quota = 0, period = 0;
  if (one->unified) {
    char path[640], text[128] = "";
    snprintf(path, sizeof path, "%s/cpu.max", one->cpu);
    read_text(path, text, sizeof text);
    if (sscanf(text, "%lu %lu", &quota, &period) != 2) return MOST_CPUS;
  } else {
    // -1 is no quota, and no number here.
    quota = number(one->cpu, "cpu.cfs_quota_us", 0);
    period = number(one->cpu, "cpu.cfs_period_us", 0);
  }
  return quota && period ? (quota + period - 1) / period : MOST_CPUS;
}

int cpus_of(const struct container *one, unsigned char cpus[MOST_CPUS]) {
  char path[640], text[4096];
  uint64_t most = quota_of(one), found = 0;
  snprintf(path, sizeof path, "%s/%s", one->cpuset, one->unified ? "cpuset.cpus.effective" : "cpuset.effective_cpus");
  if (read_text(path, text, sizeof text) <= 1 && read_text("/sys/devices/system/cpu/online", text, sizeof text) <= 1)
    strcpy(text, "0");
  memset(cpus, 0, MOST_CPUS);
  for (char *at = text; isdigit((unsigned char)*at);) {
    unsigned long first = strtoul(at, &at, 10), last = *at == '-' ? strtoul(at + 1, &at, 10) : first;
    for (; first <= last && first < MOST_CPUS && found < most; first++, found++) cpus[first] = 1;
    if (*at == ',') at++;
  }
  return (int)found;
}

static uint64_t last_sample;
static const uint64_t BETWEEN_SAMPLES = 5000000000;

int until_next_sample(void) {
  if (!count) return -1;
  uint64_t passed = uptime_ns() - last_sample;
  return passed >= BETWEEN_SAMPLES ? 0 : (int)((BETWEEN_SAMPLES - passed) / 1000000) + 1;
}

/* A container's load is the processor time that it uses, averaged as the kernel averages its own load. A container that
 * is gone is forgotten. */
void take_samples(void) {
  static const double KEPT[] = { 0.9200444146293233, 0.9834714538216175, 0.9944598480048967 };
  last_sample = uptime_ns();
  int kept = 0;
  for (int i = 0; i < count; i++) {
    struct container *one = known[i];
    if (access(one->memory, F_OK)) {
      free(one);
      continue;
    }
    known[kept++] = one;
    uint64_t used = processor_of(one).used;
    if (one->sampled && last_sample > one->sampled && used >= one->used) {
      double busy = (double)(used - one->used) / (double)(last_sample - one->sampled);
      for (int k = 0; k < 3; k++) one->load[k] = one->load[k] * KEPT[k] + busy * (1 - KEPT[k]);
    }
    one->sampled = last_sample;
    one->used = used;
  }
  count = kept;
}
