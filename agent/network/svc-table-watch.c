/*
 * svc-table-watch TABLE
 *
 * Prints one line for each change of the nftables table `inet TABLE`: the netlink port id of the socket that made the
 * change (by default its process id in its own namespace), and the process id as the kernel sees it.
 * Prints "0 0" once at the start, when it begins to receive every change, and whenever the kernel dropped notifications.
 * `nft monitor` cannot do this: it prints megabytes for an interval of addresses, or ends when it meets one.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* In messages about tables, chains, rules, sets and elements the first attribute is the name of the table. */
#define TABLE_NAME 1
#define BUFFER_BYTES (8 * 1024 * 1024)

static int fail(const char *what) {
  fprintf(stderr, "svc-table-watch: %s: %s\n", what, strerror(errno));
  return 1;
}

static const struct nlattr *attribute(const struct nlmsghdr *message, int type) {
  const char *at = (const char *)NLMSG_DATA(message) + NLMSG_ALIGN(sizeof(struct nfgenmsg));
  const char *end = (const char *)message + message->nlmsg_len;
  while (at + NLA_HDRLEN <= end) {
    const struct nlattr *found = (const struct nlattr *)at;
    if (found->nla_len < NLA_HDRLEN || at + found->nla_len > end) break;
    if ((found->nla_type & NLA_TYPE_MASK) == type) return found;
    at += NLA_ALIGN(found->nla_len);
  }
  return NULL;
}

static int is_about(const struct nlmsghdr *message, const char *table) {
  const struct nlattr *name = attribute(message, TABLE_NAME);
  size_t size = strlen(table) + 1;
  return ((const struct nfgenmsg *)NLMSG_DATA(message))->nfgen_family == NFPROTO_INET && name != NULL &&
         name->nla_len == NLA_HDRLEN + size && memcmp((const char *)name + NLA_HDRLEN, table, size) == 0;
}

static uint32_t process_of(const struct nlmsghdr *generation) {
  const struct nlattr *found = attribute(generation, NFTA_GEN_PROC_PID);
  uint32_t process = 0;
  if (found != NULL && found->nla_len == NLA_HDRLEN + sizeof process) memcpy(&process, (const char *)found + NLA_HDRLEN, sizeof process);
  return ntohl(process);
}

/* The kernel sends a transaction as several messages; the last one carries the new generation. */
static void read_messages(char *data, ssize_t size, const char *table, int *touched) {
  int left = (int)size;
  for (struct nlmsghdr *message = (struct nlmsghdr *)data; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES || message->nlmsg_len < NLMSG_LENGTH(sizeof(struct nfgenmsg))) continue;
    if ((message->nlmsg_type & 0xff) != NFT_MSG_NEWGEN) {
      if (!*touched) *touched = is_about(message, table);
      continue;
    }
    if (*touched) printf("%u %u\n", message->nlmsg_pid, process_of(message));
    *touched = 0;
  }
}

int main(int argc, char **argv) {
  static char data[1 << 18] __attribute__((aligned(NLMSG_ALIGNTO)));
  if (argc != 2) {
    fputs("usage: svc-table-watch TABLE\n", stderr);
    return 2;
  }
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  if (fd < 0) return fail("socket");
  int bytes = BUFFER_BYTES, group = NFNLGRP_NFTABLES, touched = 0;
  /* If this fails, the receive buffer is smaller, and "0 0" is printed more often. */
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
  /* bind comes first, because it leaves all groups. It also gives the socket a port id: without one, the socket would
   * count as the one that made the change, which gets no notification. */
  struct sockaddr_nl own = {.nl_family = AF_NETLINK};
  if (bind(fd, (struct sockaddr *)&own, sizeof own) < 0) return fail("bind");
  if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) < 0) return fail("NETLINK_ADD_MEMBERSHIP");

  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  puts("0 0");
  for (;;) {
    /* When the reader of the output ends, this program ends too. */
    struct pollfd wait[] = {{.fd = fd, .events = POLLIN}, {.fd = STDOUT_FILENO, .events = 0}};
    if (poll(wait, 2, -1) < 0 && errno != EINTR) return fail("poll");
    if (wait[1].revents != 0) return 0;
    struct sockaddr_nl from;
    socklen_t length = sizeof from;
    ssize_t size = recvfrom(fd, data, sizeof data, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
    if (size < 0 && errno == ENOBUFS) {
      touched = 0;
      puts("0 0");
    } else if (size < 0 && errno != EAGAIN && errno != EINTR) return fail("recvfrom");
    else if (size > 0 && from.nl_pid == 0) read_messages(data, size, argv[1], &touched);
  }
}
