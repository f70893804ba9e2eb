/*
 * svc-transparent ADDRESS PORT PROGRAM [ARGUMENT...]
 *
 * Makes a listening TCP socket that takes connections to any address (IP_TRANSPARENT, which Node cannot set), and
 * becomes PROGRAM, which finds the socket's number in SVC_EGRESS_FD. What it says on failure is for the agent's log.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int fail(const char *what) {
  fprintf(stderr, "svc-transparent: %s: %s\n", what, strerror(errno));
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fputs("usage: svc-transparent ADDRESS PORT PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
  }
  struct sockaddr_in at = {.sin_family = AF_INET};
  char *end;
  unsigned long port = strtoul(argv[2], &end, 10);
  if (inet_pton(AF_INET, argv[1], &at.sin_addr) != 1 || *end != '\0' || port == 0 || port > 65535) {
    fputs("svc-transparent: ADDRESS is an IPv4 address, PORT is 1 to 65535\n", stderr);
    return 2;
  }
  at.sin_port = htons((unsigned short)port);

  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return fail("socket");
  int on = 1;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0) return fail("SO_REUSEADDR");
  if (setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof on) < 0) return fail("IP_TRANSPARENT");
  if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0) return fail("bind");
  /* Not listen(): until the program does, connections are refused instead of waiting for somebody who may never come. */

  char number[16];
  snprintf(number, sizeof number, "%d", fd);
  if (setenv("SVC_EGRESS_FD", number, 1) < 0) return fail("setenv");
  execvp(argv[3], argv + 3);
  return fail(argv[3]);
}
