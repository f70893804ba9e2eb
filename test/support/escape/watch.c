/* watch DIRECTORY…: prints a line for everything that is made, written, changed or taken away in them, until its input
 * ends. The first line says that it watches. */

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { MOST = 1024 };

int main(int count, char **arguments) {
  const char *names[MOST];
  unsigned events = IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVE | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF;
  int watches = inotify_init();
  for (int i = 1; i < count; i++) {
    int watch = inotify_add_watch(watches, arguments[i], events);
    if (watch < 0 || watch >= MOST) return perror(arguments[i]), 1;
    names[watch] = arguments[i];
  }
  puts("watching");
  fflush(stdout);
  struct pollfd sources[] = { { .fd = 0, .events = POLLIN }, { .fd = watches, .events = POLLIN } };
  for (;;) {
    char data[64 * 1024] __attribute__((aligned(8)));
    if (poll(sources, 2, -1) < 0) return 1;
    if (sources[1].revents) {
      ssize_t got = read(watches, data, sizeof data);
      for (char *at = data; at < data + got;) {
        struct inotify_event *event = (struct inotify_event *)at;
        printf("%s/%s %#x\n", names[event->wd], event->len ? event->name : "", event->mask);
        at += sizeof *event + event->len;
      }
      fflush(stdout);
    } else if (sources[0].revents) {
      return 0;
    }
  }
}
