/* A library that CRIU loads beside its own: CRIU stops itself, once, at the moment that SVC_TEST_HOLD names, so that a test
 * can look at it, let it run on or kill it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

static void hold(const char *moment) {
  static int was;
  const char *wanted = getenv("SVC_TEST_HOLD");
  if (was || !wanted || strcmp(wanted, moment)) return;
  was = 1;
  raise(SIGSTOP);
}

static int is_stopped(pid_t pid) {
  char path[64], text[64] = "";
  snprintf(path, sizeof path, "/proc/%d/wchan", pid);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  size_t got = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[got] = 0;
  return !strcmp(text, "do_signal_stop");
}

/* The moments "seized", when CRIU has the first process, and "stopped process seized", when it has one that was stopped
 * before. */
long ptrace(enum __ptrace_request request, ...) {
  static long (*real)(enum __ptrace_request, ...);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "ptrace");
  va_list given;
  va_start(given, request);
  pid_t pid = va_arg(given, pid_t);
  void *address = va_arg(given, void *), *data = va_arg(given, void *);
  va_end(given);
  int stopped = request == PTRACE_SEIZE && is_stopped(pid);
  long result = real(request, pid, address, data);
  if (request == PTRACE_SEIZE && result == 0) hold("seized");
  if (stopped && result == 0) hold("stopped process seized");
  return result;
}

/* The moment "pages": CRIU works inside a process and is about to write the first page of the process's memory. */
ssize_t splice(int from, loff_t *at, int to, loff_t *there, size_t size, unsigned flags) {
  static ssize_t (*real)(int, loff_t *, int, loff_t *, size_t, unsigned);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "splice");
  hold("pages");
  return real(from, at, to, there, size, flags);
}

/* The moment "named": CRIU has given an open file a name. */
int linkat(int from, const char *old, int to, const char *new, int flags) {
  static int (*real)(int, const char *, int, const char *, int);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "linkat");
  int result = real(from, old, to, new, flags);
  if (result == 0 && (flags & AT_EMPTY_PATH)) hold("named");
  return result;
}
