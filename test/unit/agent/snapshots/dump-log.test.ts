/** What CRIU says in the field when it cannot dump a process, in words for the sandbox's owner. */

import { expect, test } from "vitest";
import { explainDump, memoryNotStored } from "../../../../agent/snapshots/criu/dump-log.ts";

const TASK = "(00.1) Dumping task (pid: 7 comm: ip)\n";

test.each([
  [
    "(criu/files-reg.c:1790): Can't stat path /srv/package-lock.json",
    "CRIU says: Can't stat path /srv/package-lock.json",
  ],
  ["(criu/files-reg.c:1426): Can't stat path /srv/mount", "CRIU says: Can't stat path /srv/mount"],
  ["(criu/files-reg.c:1790): Can't lookup mount=25 for fd=0 path=/var/lock/x", "a mount cannot be stored"],
  ["(criu/mount.c:947): mnt: Mount 1098 ./sys/fs has unreachable sharing", "a mount cannot be stored"],
  ["(criu/file-lock.c:110): Some file locks are hold by dumping tasks!", "a file lock cannot be stored"],
])("a path that has a word of another reason in it does not change the reason: %s", (error, reason) => {
  expect(explainDump(`(00.2) Error ${error}`).reason).toBe(reason);
});

test.each([
  [
    "(criu/cr-dump.c:1470): Timeout reached. Try to interrupt: 0\n(10.2) Error (compel/src/lib/infect.c:235): Unseizable non-zombie 68 found, state D, err -1/4",
    "a process did not stand still in time, as while it waits for a slow disk (process 7, ip)",
  ],
  [
    "(criu/sk-netlink.c:77): netlink: The socket has data to read",
    "a process has a netlink socket with messages that it has not read yet (process 7, ip)",
  ],
  [
    "(criu/sk-queue.c:144): skqueue: Control messages in queue, not supported",
    "a process has not read a message with open files or an identity on a Unix socket yet (process 7, ip)",
  ],
  [
    "(criu/cr-dump.c:1681): A session leader of 41(0) is outside of its pid namespace",
    "a process was started from outside of the sandbox, as docker exec does (process 7, ip)",
  ],
  [
    "(criu/tty.c:2281): tty: ctty inheritance detected sid/pgrp 37, no PTY peer with sid/pgrp needed",
    "a process uses a terminal whose other end is closed or outside of the sandbox (process 7, ip)",
  ],
  [
    "(criu/sk-inet.c:137): inet: Unsupported proto 262 for socket 2f9bc5",
    "a process has a socket of a kind that cannot be stored (process 7, ip)",
  ],
  [
    "(criu/sockets.c:767): sockets: BUG! Unknown socket collected (family 38)",
    "a process has a socket of a kind that cannot be stored (process 7, ip)",
  ],
  [
    "(compel/src/lib/infect.c:847): Can't create memfd in victim: Cannot allocate memory",
    "there is no memory left for it, in the sandbox or on its node",
  ],
])("%s is told in words, with the process", (error, reason) => {
  expect(explainDump(`${TASK}(00.2) Error ${error}`)).toEqual({ reason, noSpace: false });
});

test("who asked for a snapshot is told why memory cannot be stored, what can be, and what became of the sandbox", () => {
  expect(memoryNotStored("a process uses io_uring")).toBe(
    "the sandbox's memory cannot be stored: a process uses io_uring; memory: false keeps its disk alone; it goes on running",
  );
});
