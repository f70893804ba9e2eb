/* svc-extents FILE: prints the begin and the length of every range of data in a file, a line for each. The rest is holes.
 * Exit status 3: the file system cannot tell. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int give_up(const char *what) {
  fprintf(stderr, "svc-extents: %s: %s\n", what, strerror(errno));
  return errno == EINVAL || errno == EOPNOTSUPP ? 3 : 1;
}

int main(int count, char **arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: svc-extents FILE\n");
    return 2;
  }
  int file = open(arguments[1], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  struct stat about;
  if (file < 0 || fstat(file, &about)) return give_up(arguments[1]);
  for (off_t at = 0; at < about.st_size;) {
    off_t begin = lseek(file, at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;
    if (begin < 0) return give_up("looking for data");
    off_t end = lseek(file, begin, SEEK_HOLE);
    if (end < 0) return give_up("looking for a hole");
    printf("%lld %lld\n", (long long)begin, (long long)(end - begin));
    at = end;
  }
  return fflush(stdout) ? give_up("the list") : 0;
}
