/* hostile SEED PROCESS CANARY…: the only program of a sandbox that wants files on the host. It holds files, sockets, watches
 * and directories open in ways that CRIU has to make again by name, and replaces the directories by links to the canaries.
 * The seed alone decides what it does. The file /done gets one line for each thing, and exists once all are done. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static unsigned long state;
static char **canaries;
static int canary_count;
static FILE *done;
/* The id of a process on the host, or `self`. */
static const char *process;

static unsigned pick(unsigned below) {
  state = state * 6364136223846793005UL + 1442695040888963407UL;
  return (unsigned)(state >> 33) % below;
}

__attribute__((format(printf, 1, 2))) static char *text(const char *format, ...) {
  char *made = NULL;
  va_list given;
  va_start(given, format);
  if (vasprintf(&made, format, given) < 0) exit(2);
  va_end(given);
  return made;
}

static void must(int worked, const char *what) {
  if (worked) return;
  perror(what);
  exit(2);
}

static int make_file(const char *path, mode_t mode) {
  int file = open(path, O_CREAT | O_RDWR, 0600);
  must(file >= 0 && write(file, "#!/bin/sh\nid\n", 13) == 13 && ftruncate(file, 8192) == 0, path);
  must(fchmod(file, mode) == 0, "fchmod");
  return file;
}

static int make_socket(const char *path) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int type = pick(2) ? SOCK_STREAM : SOCK_DGRAM;
  int made = socket(AF_UNIX, type, 0);
  must(made >= 0 && bind(made, (struct sockaddr *)&address, sizeof address) == 0, path);
  if (type == SOCK_STREAM) must(listen(made, 5) == 0, "listen");
  return made;
}

/* Starts a process whose working directory, or root with an unlinked file open, is removed or moved later. */
static void stay_in(const char *directory, int as_root) {
  int there[2];
  char byte;
  must(pipe(there) == 0, "pipe");
  if (fork() == 0) {
    must(chdir(directory) == 0 && (!as_root || chroot(".") == 0), directory);
    if (as_root) must(open("/rooted", O_RDWR | O_CREAT, 0644) >= 0 && unlink("/rooted") == 0, directory);
    must(write(there[1], "", 1) == 1, directory);
    close(there[0]);
    close(there[1]);
    for (;;) pause();
  }
  close(there[1]);
  must(read(there[0], &byte, 1) == 1, directory);
  close(there[0]);
}

static int may_change_root(void) { return chroot("/") == 0; }

static const char *hold(const char *directory) {
  char *path = text("%s/owned", directory);
  mode_t modes[] = { 04755, 06755, 0644, 01777, 0600 };
  mode_t mode = modes[pick(5)];
  switch (pick(10)) {
    case 0:
    case 1:
      make_file(path, mode);
      unlink(path);
      return "an unlinked file";
    case 2:
      must(mkfifo(path, 0666) == 0 && open(path, O_RDWR) >= 0, path);
      unlink(path);
      return "an unlinked fifo";
    case 3: {
      int file = make_file(path, mode);
      must(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) != MAP_FAILED, "mmap");
      close(file);
      unlink(path);
      return "a mapped unlinked file";
    }
    case 4:
      make_socket(path);
      return "a socket with a name";
    case 5:
      make_socket(path);
      unlink(path);
      return "an unlinked socket";
    case 6: {
      char *other = text("/away/%u.other", pick(1000000));
      make_file(path, mode);
      must(link(path, other) == 0, other);
      unlink(path);
      return "a file with another name";
    }
    case 7: {
      int watches = inotify_init();
      close(make_file(path, mode));
      must(inotify_add_watch(watches, path, IN_ALL_EVENTS) >= 0, path);
      if (pick(2)) unlink(path);
      return "a watched file";
    }
    case 8:
      must(mkdir(path, 0755) == 0 && open(path, O_RDONLY | O_DIRECTORY) >= 0, path);
      rmdir(path);
      return "a removed directory";
    default:
      must(mkdir(path, 0755) == 0, path);
      stay_in(path, 0);
      rmdir(path);
      return "the directory of a process";
  }
}

static const char *canary(void) { return canaries[pick((unsigned)canary_count)]; }

static void link_to(const char *target, const char *directory) { must(symlink(target, directory) == 0, directory); }

/* Removes the directory, or moves it away with its content, and puts something in its place that leads elsewhere. */
static const char *replace(const char *directory, int number, int harmless) {
  char *away = text("/away/%d", number), *inside = text("/inside/%d", number);
  unsigned trick = harmless ? pick(3) : 3 + pick(6);
  if (trick == 0) return "left";
  if (trick == 2) {
    must(mkdir(inside, 0755) == 0 && mkdir(text("%s/deep", inside), 0755) == 0, inside);
    if (pick(2)) must(mkfifo(text("%s/owned", inside), 0666) == 0, "a decoy");
  }
  // An open file keeps the name of a removed directory, and follows a moved one.
  rmdir(text("%s/deep", directory));
  if (trick == 1 || rmdir(directory)) must(rename(directory, away) == 0 || (mkdir(away, 0755) == 0), away);
  switch (trick) {
    case 1: return "moved";
    case 2: link_to(inside, directory); return "a link inside";
    case 3: link_to(canary(), directory); return "a link";
    case 4: link_to(text("../../../../../../..%s", canary()), directory); return "a relative link";
    case 5:
      link_to(canary(), inside);
      link_to(text("../.%s", inside), text("/inside/%d.second", number));
      link_to(text("/inside/%d.second", number), directory);
      return "a chain of links";
    case 6:
      must(mkdir(directory, 0755) == 0 && rmdir(directory) == 0, directory);
      link_to(text("%s/", canary()), directory);
      return "a link with a slash";
    case 7: link_to(text("/proc/%s/root%s", process, canary()), directory); return "a link through a process";
    default: {
      const char *first = canary();
      link_to(text("%s/deep/..", first), directory);
      return "a link through a directory";
    }
  }
}

int main(int count, char **arguments) {
  must(count > 3, "arguments");
  state = strtoul(arguments[1], NULL, 10) * 2654435761UL + 1;
  process = arguments[2];
  canaries = arguments + 3;
  canary_count = count - 3;
  done = fopen("/done.new", "w");
  must(done != NULL && mkdir("/tmp/h", 0755) == 0 && mkdir("/away", 0755) == 0 && mkdir("/inside", 0755) == 0, "/tmp/h");
  int harmless = pick(5) < 2, things = 1 + (int)pick(4);
  for (int i = 0; i < things; i++) {
    // Some directories are deep, and one of their parents is removed or moved.
    char *top = text("/tmp/h/%d", i), *directory = pick(3) ? top : text("%s/deep", top);
    must(mkdir(top, 0755) == 0 && (directory == top || mkdir(directory, 0755) == 0), directory);
    // Needs the capability and the call, which a sandbox may lack.
    int rooted = may_change_root() && (strtoul(arguments[1], NULL, 10) + (unsigned)i) % 2 == 0;
    if (rooted) stay_in(directory, 1);
    const char *held = hold(directory);
    fprintf(done, "%s in %s%s: %s\n", held, directory, rooted ? ", the root of a process" : "", replace(top, i, harmless));
  }
  // The first process of the sandbox too may have another root, and a directory outside of it open.
  int outside = open("/", O_RDONLY | O_DIRECTORY), moves = may_change_root() && strtoul(arguments[1], NULL, 10) % 5 == 0;
  if (moves) fprintf(done, "the first process in /inside\n");
  fclose(done);
  must(rename("/done.new", "/done") == 0 && (!moves || chroot("/inside") == 0), "/done");
  for (unsigned long beat = 0;; beat++) {
    FILE *alive = fdopen(openat(outside, "alive", O_WRONLY | O_CREAT | O_TRUNC, 0644), "w");
    if (alive) fprintf(alive, "%lu\n", beat), fclose(alive);
    usleep(20000);
  }
}
