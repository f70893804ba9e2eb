/* Finds the directories that CRIU needs. runc passes them to CRIU as descriptors, so this file reads their paths from
 * the command line of runc, which Docker and the agent write, and the mounts of the container from its bundle. */

#define _GNU_SOURCE
#include "confine-runc.h"
#include "confine-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_COMMAND = 64 * 1024, LONGEST_CONFIG = 4 * 1024 * 1024 };

static char *read_all(const char *path, size_t longest, size_t *length) {
  char *text = malloc(longest + 1);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (!text || file < 0) give_up(path);
  ssize_t got;
  *length = 0;
  while (*length < longest && (got = read(file, text + *length, longest - *length)) > 0) *length += (size_t)got;
  if (*length == longest) errno = EFBIG, give_up(path);
  close(file);
  text[*length] = 0;
  return text;
}

/* The value of `--name VALUE` or `--name=VALUE`, or NULL. */
static const char *option(const char *text, size_t length, const char *name) {
  size_t size = strlen(name);
  for (const char *word = text; word < text + length; word += strlen(word) + 1) {
    if (strncmp(word, name, size)) continue;
    if (word[size] == '=') return word + size + 1;
    const char *next = word + size + 1;
    if (!word[size] && next < text + length) return next;
  }
  return NULL;
}

/* Adds the path as given and the path without links, because runc passes either one to CRIU. */
static void see_both(const char *path, int writable) {
  char real[PATH_MAX];
  if (*path != '/') errno = EINVAL, give_up(path);
  if (!realpath(path, real)) give_up(path);
  see(path, writable, 1);
  see(real, writable, 1);
}

static void see_both_apart(const char *path) {
  char real[PATH_MAX];
  if (!realpath(path, real)) give_up(path);
  see_apart(path);
  see_apart(real);
}

/* Decodes a JSON string in place, up to its closing quote. Knows the escapes of a path: \" \\ \/. Returns its end, or NULL. */
static char *unescape(char *text) {
  char *to = text;
  for (; *text && *text != '"'; text++) {
    if (*text == '\\' && !strchr("\"\\/", *++text)) return NULL;
    *to++ = *text;
  }
  if (!*text) return NULL;
  *to = 0;
  return text + 1;
}

/* Adds the source of every bind mount in the bundle. Quotes inside strings are escaped, so this text can only be a key. */
static void see_sources(const char *bundle) {
  char path[PATH_MAX];
  size_t length;
  snprintf(path, sizeof path, "%s/config.json", bundle);
  char *text = read_all(path, LONGEST_CONFIG, &length);
  static const char name[] = "\"source\":";
  for (char *at = text; (at = strstr(at, name));) {
    int is_name = at > text && strchr(",{ \t\n", at[-1]);
    at += strlen(name);
    while (*at == ' ') at++;
    if (!is_name || at[0] != '"' || at[1] != '/') continue;
    char *source = at + 1, *end = unescape(source);
    if (!end) errno = EINVAL, give_up(path);
    see_both(source, 1);
    at = end;
  }
  free(text);
}

void see_what_runc_uses(void) {
  char path[64], state[PATH_MAX];
  size_t length;
  snprintf(path, sizeof path, "/proc/%d/cmdline", getppid());
  char *text = read_all(path, LONGEST_COMMAND, &length);
  const char *images = option(text, length, "--image-path"), *work = option(text, length, "--work-path");
  const char *bundle = option(text, length, "--bundle"), *root = option(text, length, "--root");
  const char *id = text;
  int restores = 0;
  for (const char *word = text; word < text + length; word += strlen(word) + 1) {
    restores |= !strcmp(word, "restore");
    id = word;
  }
  // runc gives no images directory only when it asks for the version of CRIU.
  if (!images) return;
  see_both(images, !restores || !work || !strcmp(images, work));
  if (work) see_both(work, 1);
  if (restores) {
    if (!bundle) bundle = option(text, length, "-b");
    if (!bundle) errno = EINVAL, give_up("the bundle");
    snprintf(state, sizeof state, "%s/%s", root ? root : "/run/runc", id);
    see_both(state, 1);
    see_sources(bundle);
    // svc-runc names the directory of the host that every container mounts.
    const char *runtime = getenv("SVC_ENVD_RUNTIME");
    if (runtime && *runtime) see_both_apart(runtime);
  }
  free(text);
}
