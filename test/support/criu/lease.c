/* lease FILE: holds a lease on FILE: a program that opens FILE waits until this program ends or the kernel's limit
 * (fs.lease-break-time) is over. Prints `held`, then waits for the end of its input. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **arguments) {
  signal(SIGIO, SIG_IGN);
  int file = count == 2 ? open(arguments[1], O_RDONLY) : -1;
  if (file < 0 || fcntl(file, F_SETLEASE, F_RDLCK)) return perror("lease"), 1;
  puts("held");
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) continue;
  return 0;
}
