import { expect, test } from "vitest";
import { seccompProfile } from "../../../../agent/containers/seccomp/seccomp.ts";

const profile = seccompProfile("x64");

type Call = { name: string; args?: readonly number[] };

/** The profile's verdict on a call, as the kernel reads it: a rule with arguments applies when all of them match. */
function verdict({ name, args = [] }: Call): "allowed" | number {
  const matching = profile.syscalls.filter(({ names, args: wanted = [] }) => {
    return (
      names.includes(name) &&
      wanted.every(({ index, value, valueTwo = 0, op }) => {
        const given = args[index] ?? 0;
        if (op === "SCMP_CMP_EQ") return given === value;
        if (op === "SCMP_CMP_NE") return given !== value;
        if (op === "SCMP_CMP_GT") return given > value;
        return Number(BigInt(given) & BigInt(value)) === valueTwo;
      })
    );
  });
  if (matching.some(({ action }) => action === "SCMP_ACT_ALLOW")) return "allowed";
  return matching[0]?.errnoRet ?? profile.defaultErrnoRet;
}

const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

test.each([
  "bpf",
  "perf_event_open",
  "userfaultfd",
  "keyctl",
  "add_key",
  "request_key",
  "mount",
  "umount2",
  "move_mount",
  "fsopen",
  "fsmount",
  "open_tree",
  "unshare",
  "setns",
  "pivot_root",
  "open_by_handle_at",
  "init_module",
  "finit_module",
  "delete_module",
  "kexec_load",
  "kexec_file_load",
  "reboot",
  "swapon",
  "swapoff",
  "acct",
  "syslog",
  "settimeofday",
  "clock_settime",
  "clock_adjtime",
  "adjtimex",
  "quotactl",
  "iopl",
  "ioperm",
  "modify_ldt",
  "lookup_dcookie",
  "nfsservctl",
  "vhangup",
  "sethostname",
  "uselib",
  "a_call_that_does_not_exist_yet",
])("the call %s is not permitted", (name) => {
  expect(verdict({ name })).toBe(EPERM);
});

test.each([
  "io_uring_setup",
  "io_uring_enter",
  "io_uring_register",
  "clone3",
  "pkey_alloc",
  "landlock_create_ruleset",
  "get_mempolicy",
  "set_mempolicy",
  "set_mempolicy_home_node",
  "mbind",
  "move_pages",
  "migrate_pages",
  "vmsplice",
  "statmount",
  "listmount",
  "lsm_get_self_attr",
])("the call %s looks absent", (name) => {
  expect(verdict({ name })).toBe(ENOSYS);
});

test.each([1, 2, 10])("sockets of family %s open", (family) => {
  expect(verdict({ name: "socket", args: [family] })).toBe("allowed");
});

test.each([0, 3, 9, 15, 17, 29, 38, 40, 44, 2 ** 31])("sockets of family %s are not supported", (family) => {
  expect(verdict({ name: "socket", args: [family] })).toBe(EAFNOSUPPORT);
});

test("Multipath TCP looks absent, so that servers of Go take TCP, which can be stored", () => {
  const [SOCK_STREAM, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_MPTCP, EPROTONOSUPPORT] = [1, 6, 17, 262, 93] as const;
  for (const family of [2, 10]) {
    expect(verdict({ name: "socket", args: [family, SOCK_STREAM, IPPROTO_MPTCP] })).toBe(EPROTONOSUPPORT);
    for (const protocol of [0, IPPROTO_TCP, IPPROTO_UDP])
      expect(verdict({ name: "socket", args: [family, SOCK_STREAM, protocol] })).toBe("allowed");
  }
});

test("of netlink only routing and socket diagnosis can be opened", () => {
  expect(verdict({ name: "socket", args: [16, 3, 0] })).toBe("allowed");
  expect(verdict({ name: "socket", args: [16, 3, 4] })).toBe("allowed");
  expect(verdict({ name: "socket", args: [16, 3, 9] })).toBe(EAFNOSUPPORT);
  expect(verdict({ name: "socket", args: [16, 3, 12] })).toBe(EPERM);
});

test("processes and threads can be made, namespaces cannot", () => {
  const SIGCHLD = 17;
  const THREAD = 0x003d0f00;
  expect(verdict({ name: "clone", args: [SIGCHLD] })).toBe("allowed");
  expect(verdict({ name: "clone", args: [THREAD] })).toBe("allowed");
  for (const flag of [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
    expect(verdict({ name: "clone", args: [SIGCHLD | flag] })).toBe(EPERM);
  }
});

test("fallocate can release space and never reserve it", () => {
  const EOPNOTSUPP = 95;
  for (const mode of [0, 1, 2, 8, 0x10, 0x20, 0x40, 2 ** 32 + 3])
    expect(verdict({ name: "fallocate", args: [0, mode] }), String(mode)).toBe(EOPNOTSUPP);
  expect(verdict({ name: "fallocate", args: [0, 3] })).toBe("allowed");
});

test("ioctl requests that reserve space are refused, with any value in the half of the number that the kernel ignores", () => {
  for (const number of [0x40305828, 0x4030582a, 0x40305839, 0x40305800, 0x403058ff])
    for (const above of [0, 2 ** 32, 2 ** 40])
      expect(verdict({ name: "ioctl", args: [0, number + above] }), number.toString(16)).toBe(EPERM);
});

test.each([
  ["TCGETS", 0x5401],
  ["FIONBIO", 0x5421],
  ["FICLONE", 0x40049409],
  ["FS_IOC_GETFLAGS", 0x80086601],
  ["TUNSETIFF", 0x400454ca],
  ["one like those that reserve, of another size", 0x40205828],
  ["nothing", 0],
])("the request %s of ioctl passes", (_name, number) => {
  expect(verdict({ name: "ioctl", args: [0, number] })).toBe("allowed");
});

test("no fcntl takes a lease or watches a directory, with any value in the half of the number that the kernel ignores", () => {
  const EINVAL = 22;
  const [F_SETLEASE, F_NOTIFY, F_SETDELEG, NOT_YET] = [1024, 1026, 1040, 1077] as const;
  for (const number of [F_SETLEASE, F_NOTIFY, F_SETDELEG, NOT_YET])
    for (const above of [0, 2 ** 32, 2 ** 40])
      expect(verdict({ name: "fcntl", args: [0, number + above] }), String(number + above)).toBe(EINVAL);
  // F_DUPFD with another upper half: the kernel would take it for F_DUPFD, and this list takes it for unknown.
  expect(verdict({ name: "fcntl", args: [0, 2 ** 32] })).toBe(EINVAL);
});

test.each([
  ["F_DUPFD", 0],
  ["F_SETFL", 4],
  ["F_SETLKW", 7],
  ["F_SETOWN_EX", 15],
  ["F_OFD_SETLKW", 38],
  ["F_GETLEASE", 1025],
  ["F_DUPFD_CLOEXEC", 1030],
  ["F_GETPIPE_SZ", 1032],
  ["F_ADD_SEALS", 1033],
  ["F_SET_FILE_RW_HINT", 1038],
])("the command %s of fcntl passes", (_name, number) => {
  expect(verdict({ name: "fcntl", args: [0, number] })).toBe("allowed");
});

test("calls that ordinary programs need are allowed", () => {
  const needed =
    "execve chroot openat read write mmap futex epoll_pwait accept4 sendmmsg inotify_add_watch fsetxattr ptrace prlimit64 memfd_create statx getrandom rseq io_submit mq_open shmget timerfd_create";
  for (const name of needed.split(" ")) expect(verdict({ name }), name).toBe("allowed");
});

test("no call is listed twice, and only the machine's own word size runs", () => {
  const allowed = profile.syscalls[0]?.names ?? [];
  expect(new Set(allowed).size).toBe(allowed.length);
  expect(profile.architectures).toEqual(["SCMP_ARCH_X86_64"]);
  expect(seccompProfile("arm64").architectures).toEqual(["SCMP_ARCH_AARCH64"]);
});
