/*
 * svc-table-watch TABLE
 *
 * Prints one line for each change of the nftables table `inet TABLE`: the netlink port id of the socket that made the
 * change (by default its process id in its own namespace), and the process id as the kernel sees it.
 * Prints "other" for a change of other tables, except `inet TABLE_probe`, and "forwarding" when IPv4 forwarding of the host
 * or of a link has been switched.
 * Prints "0 0" once at the start, when it begins to receive every change, and whenever the kernel dropped notifications.
 * `nft monitor` cannot do this: it prints megabytes for an interval of addresses, or ends when it meets one.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netconf.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
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

/* Whether the message is about a table, and about this one. */
static int is_table(const struct nlmsghdr *message, const char *table) {
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

/* What the messages of a transaction were about. */
struct touched {
  int own, other;
};

/* The kernel sends a transaction as several messages; the last one carries the new generation. */
static void read_messages(char *data, ssize_t size, const char *table, const char *probe, struct touched *touched) {
  int left = (int)size;
  for (struct nlmsghdr *message = (struct nlmsghdr *)data; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES || message->nlmsg_len < NLMSG_LENGTH(sizeof(struct nfgenmsg))) continue;
    if ((message->nlmsg_type & 0xff) != NFT_MSG_NEWGEN) {
      if (is_table(message, table)) touched->own = 1;
      else if (!is_table(message, probe)) touched->other = 1;
      continue;
    }
    if (touched->own) printf("%u %u\n", message->nlmsg_pid, process_of(message));
    if (touched->other) puts("other");
    *touched = (struct touched){0, 0};
  }
}

/* A new link gets a notice of its settings too, with forwarding as it is: only links that forward nothing count, and the host
 * as a whole. */
static int switches_forwarding(char *data, ssize_t size) {
  int left = (int)size, found = 0;
  for (struct nlmsghdr *message = (struct nlmsghdr *)data; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
    int index = 0, forwarding = -1;
    if (message->nlmsg_type != RTM_NEWNETCONF || message->nlmsg_len < NLMSG_LENGTH(sizeof(struct netconfmsg))) continue;
    if (((struct netconfmsg *)NLMSG_DATA(message))->ncm_family != AF_INET) continue;
    char *at = (char *)NLMSG_DATA(message) + NLMSG_ALIGN(sizeof(struct netconfmsg)), *end = (char *)message + message->nlmsg_len;
    while (at + NLA_HDRLEN <= end) {
      struct nlattr *attribute = (struct nlattr *)at;
      if (attribute->nla_len < NLA_HDRLEN || at + attribute->nla_len > end) break;
      if (attribute->nla_len >= NLA_HDRLEN + sizeof(int)) {
        if (attribute->nla_type == NETCONFA_IFINDEX) memcpy(&index, at + NLA_HDRLEN, sizeof index);
        if (attribute->nla_type == NETCONFA_FORWARDING) memcpy(&forwarding, at + NLA_HDRLEN, sizeof forwarding);
      }
      at += NLA_ALIGN(attribute->nla_len);
    }
    if (forwarding == 0 || (forwarding > 0 && index == NETCONFA_IFINDEX_ALL)) found = 1;
  }
  return found;
}

/* A socket for the notices of a group; a port id of its own is given by bind, which leaves all groups and so comes first. */
static int listen_to(int protocol, int group) {
  struct sockaddr_nl own = {.nl_family = AF_NETLINK};
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), bytes = BUFFER_BYTES;
  if (fd < 0) return fail("socket"), -1;
  /* If this fails, the receive buffer is smaller, and "0 0" is printed more often. */
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
  /* Without a port id the socket would count as the one that made the change, which gets no notification. */
  if (bind(fd, (struct sockaddr *)&own, sizeof own) < 0) return fail("bind"), -1;
  if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) < 0) return fail("NETLINK_ADD_MEMBERSHIP"), -1;
  return fd;
}

int main(int argc, char **argv) {
  static char data[1 << 18] __attribute__((aligned(NLMSG_ALIGNTO)));
  char probe[256];
  struct touched touched = {0, 0};
  if (argc != 2 || snprintf(probe, sizeof probe, "%s_probe", argv[1]) >= (int)sizeof probe) {
    fputs("usage: svc-table-watch TABLE\n", stderr);
    return 2;
  }
  int tables = listen_to(NETLINK_NETFILTER, NFNLGRP_NFTABLES), settings = listen_to(NETLINK_ROUTE, RTNLGRP_IPV4_NETCONF);
  if (tables < 0 || settings < 0) return 1;

  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  puts("0 0");
  for (;;) {
    /* When the reader of the output ends, this program ends too. */
    struct pollfd wait[] = {{.fd = tables, .events = POLLIN}, {.fd = settings, .events = POLLIN}, {.fd = STDOUT_FILENO, .events = 0}};
    if (poll(wait, 3, -1) < 0 && errno != EINTR) return fail("poll");
    if (wait[2].revents != 0) return 0;
    for (int which = 0; which < 2; which++) {
      struct sockaddr_nl from;
      socklen_t length = sizeof from;
      ssize_t size = recvfrom(wait[which].fd, data, sizeof data, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
      if (size < 0 && errno == ENOBUFS) {
        touched = (struct touched){0, 0};
        puts("0 0");
      } else if (size < 0 && errno != EAGAIN && errno != EINTR) return fail("recvfrom");
      else if (size > 0 && from.nl_pid == 0) {
        if (which == 0) read_messages(data, size, argv[1], probe, &touched);
        else if (switches_forwarding(data, size)) puts("forwarding");
      }
    }
  }
}
