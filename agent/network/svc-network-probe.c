/*
 * svc-network-probe NETNS ADDRESS GATEWAY
 *
 * Sends two packets from a network namespace, as a sandbox would: the first one of a TCP connection to port 443 of ADDRESS, and a
 * datagram to port 53 of GATEWAY. Waits for no answer. The packets live for one router: one that left this host would not
 * get beyond the next one.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOPS 2

static int fail(const char *what) {
  fprintf(stderr, "svc-network-probe: %s: %s\n", what, strerror(errno));
  return 1;
}

static int open_socket(int kind, struct sockaddr_in *to, const char *address, int port) {
  int hops = HOPS, fd;
  memset(to, 0, sizeof *to);
  to->sin_family = AF_INET;
  to->sin_port = htons((uint16_t)port);
  if (inet_pton(AF_INET, address, &to->sin_addr) != 1) return errno = EINVAL, -1;
  fd = socket(AF_INET, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && setsockopt(fd, IPPROTO_IP, IP_TTL, &hops, sizeof hops) < 0) return -1;
  return fd;
}

int main(int argc, char **argv) {
  struct sockaddr_in to;
  if (argc != 4) {
    fputs("usage: svc-network-probe NETNS ADDRESS GATEWAY\n", stderr);
    return 2;
  }
  int namespace = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (namespace < 0 || setns(namespace, CLONE_NEWNET) < 0) return fail(argv[1]);
  int stream = open_socket(SOCK_STREAM, &to, argv[2], 443);
  if (stream < 0) return fail(argv[2]);
  /* A refusal is an answer of the firewall, which is what the caller looks at. */
  if (connect(stream, (struct sockaddr *)&to, sizeof to) < 0 && errno == ENETUNREACH) return fail("connect");
  int datagram = open_socket(SOCK_DGRAM, &to, argv[3], 53);
  if (datagram < 0) return fail(argv[3]);
  (void)sendto(datagram, "", 1, 0, (struct sockaddr *)&to, sizeof to);
  return 0;
}
