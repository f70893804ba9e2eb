/**
 * The system calls that a sandbox may make, as JSON for Docker: an allow list that refuses everything else. Our own,
 * because the Docker packages of distributions contain lists that are years old. Pure.
 */

import { ALLOWED_CALLS, FCNTL_COMMANDS } from "./seccomp-calls.ts";

const EPERM = 1;
const EINVAL = 22;
const ENOSYS = 38;
const EPROTONOSUPPORT = 93;
const EOPNOTSUPP = 95;
const EAFNOSUPPORT = 97;

/** Flags of `clone` that create namespaces: new namespaces are the usual way to attack kernels. */
const NAMESPACE_FLAGS = 0x7e020080;

/** Socket families that a sandbox may open: unix, IPv4, IPv6. Never AF_ALG (38), AF_VSOCK (40), AF_PACKET (17). */
const UNIX = 1;
const INTERNET_FAMILIES = [2, 10];
const SOCKET_FAMILIES = [UNIX, ...INTERNET_FAMILIES];
/** IPPROTO_MPTCP. CRIU cannot store such a socket, and servers of Go from 1.24 on open one unless the kernel has none. */
const MULTIPATH_TCP = 262;
const AF_NETLINK = 16;
/** Routing (getifaddrs, `ip`) and socket diagnosis (`ss`); the rest of netlink is attack surface without use. */
const NETLINK_PROTOCOLS = [0, 4];

/** Personalities: Linux, Linux without address randomisation, and the query. */
const PERSONALITIES = [0x0, 0x0008, 0x0040000, 0xffffffff];

/** `fallocate` that gives space back: FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE. */
const PUNCH_HOLE = 3;

/**
 * Requests of `ioctl` on files that do what `fallocate` does: FS_IOC_RESVSP, FS_IOC_RESVSP64, FS_IOC_ZERO_RANGE and
 * their like are `_IOW('X', n, struct space_resv)`, which is 0x403058 and one byte for n.
 */
const RESERVES_SPACE = 0x40305800;
/** Linux's own commands of `fcntl` begin here; the numbers below are of POSIX and of other systems. */
const FIRST_LINUX_COMMAND = 1024;

const FIRST_BIT = 8;
const BITS = 32;

/** Calls that programs try, and do without when the kernel lacks them; "not permitted" would end such programs. */
const UNKNOWN_TO_US = [
  // The flags are behind a pointer, where a filter cannot see them: the C library falls back to clone.
  "clone3",
  "io_uring_setup",
  "io_uring_enter",
  "io_uring_register",
  // A memory image does not hold their effects: a restored program would be less confined, or could not be dumped.
  "landlock_add_rule",
  "landlock_create_ruleset",
  "landlock_restrict_self",
  "memfd_secret",
  // CRIU stores no protection keys of memory: a restored program that uses one again is killed. Processors without them are common.
  "pkey_alloc",
  "pkey_free",
  "pkey_mprotect",
  // As on a kernel without NUMA: libnuma takes "not permitted" for memory of several nodes, goes on, and each later call complains.
  "get_mempolicy",
  "mbind",
  "migrate_pages",
  "move_pages",
  "set_mempolicy",
  "set_mempolicy_home_node",
  // `yes` and others write instead.
  "vmsplice",
  // Newer than most kernels: programs read /proc/self/mountinfo and /proc/self/attr instead.
  "listmount",
  "lsm_get_self_attr",
  "lsm_list_modules",
  "lsm_set_self_attr",
  "statmount",
] as const;

interface Rule {
  readonly names: readonly string[];
  readonly action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  readonly errnoRet?: number;
  readonly args?: readonly {
    readonly index: number;
    readonly value: number;
    readonly valueTwo?: number;
    readonly op: "SCMP_CMP_EQ" | "SCMP_CMP_NE" | "SCMP_CMP_MASKED_EQ" | "SCMP_CMP_GT";
  }[];
}

export interface SeccompProfile {
  readonly defaultAction: "SCMP_ACT_ERRNO";
  readonly defaultErrnoRet: number;
  readonly architectures: readonly string[];
  readonly syscalls: readonly Rule[];
}

/** Allows native 64-bit programs only: 32-bit programs, which use another set of socket calls, do not run. */
export function seccompProfile(architecture: NodeJS.Architecture): SeccompProfile {
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: EPERM,
    architectures: [architecture === "arm64" ? "SCMP_ARCH_AARCH64" : "SCMP_ARCH_X86_64"],
    syscalls: [
      { names: ALLOWED_CALLS, action: "SCMP_ACT_ALLOW" },
      {
        names: ["clone"],
        action: "SCMP_ACT_ALLOW",
        args: [{ index: 0, value: NAMESPACE_FLAGS, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }],
      },
      allowWhen(["socket"], [[0, UNIX]]),
      ...INTERNET_FAMILIES.flatMap(withoutMultipath),
      ...NETLINK_PROTOCOLS.map(
        (protocol): Rule =>
          allowWhen(
            ["socket"],
            [
              [0, AF_NETLINK],
              [2, protocol],
            ],
          ),
      ),
      // "Not supported" rather than "not permitted": programs that only probe (PAM's audit, for one) continue.
      ...otherFamilies(),
      ...PERSONALITIES.map((personality): Rule => allowWhen(["personality"], [[0, personality]])),
      ...fileCommands(),
      ...reservations(),
      { names: UNKNOWN_TO_US, action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
    ],
  };
}

function allowWhen(names: readonly string[], equal: readonly (readonly [index: number, value: number])[]): Rule {
  return {
    names,
    action: "SCMP_ACT_ALLOW",
    args: equal.map(([index, value]) => ({ index, value, op: "SCMP_CMP_EQ" as const })),
  };
}

/** As on a kernel without Multipath TCP: programs that try it take TCP then. */
function withoutMultipath(family: number): Rule[] {
  const isFamily = { index: 0, value: family, op: "SCMP_CMP_EQ" } as const;
  const protocol = { index: 2, value: MULTIPATH_TCP } as const;
  return [
    { names: ["socket"], action: "SCMP_ACT_ALLOW", args: [isFamily, { ...protocol, op: "SCMP_CMP_NE" }] },
    {
      names: ["socket"],
      action: "SCMP_ACT_ERRNO",
      errnoRet: EPROTONOSUPPORT,
      args: [isFamily, { ...protocol, op: "SCMP_CMP_EQ" }],
    },
  ];
}

function otherFamilies(): Rule[] {
  const refuse = { names: ["socket"], action: "SCMP_ACT_ERRNO", errnoRet: EAFNOSUPPORT } as const;
  const named = Array.from({ length: AF_NETLINK }, (_, family) => family).filter((n) => !SOCKET_FAMILIES.includes(n));
  const audit = 9;
  return [
    ...named.map((family) => ({ ...refuse, args: [{ index: 0, value: family, op: "SCMP_CMP_EQ" as const }] })),
    { ...refuse, args: [{ index: 0, value: AF_NETLINK, op: "SCMP_CMP_GT" }] },
    {
      ...refuse,
      args: [
        { index: 0, value: AF_NETLINK, op: "SCMP_CMP_EQ" },
        { index: 2, value: audit, op: "SCMP_CMP_EQ" },
      ],
    },
  ];
}

/**
 * A command of `fcntl` is unknown, as on a kernel without it, unless it is listed. The kernel ignores the upper half of the
 * number, so a rule that only refuses some numbers could be passed by with any other upper half.
 */
function fileCommands(): Rule[] {
  const command = 1;
  const known = Object.values(FCNTL_COMMANDS);
  const last = Math.max(...known);
  const unknown = Array.from({ length: last }, (_, number) => number).filter(
    (number) => number >= FIRST_LINUX_COMMAND && !known.includes(number),
  );
  const refuse = { names: ["fcntl"], action: "SCMP_ACT_ERRNO", errnoRet: EINVAL } as const;
  return [
    ...known.map((value): Rule => allowWhen(["fcntl"], [[command, value]])),
    ...unknown.map((value): Rule => ({ ...refuse, args: [{ index: command, value, op: "SCMP_CMP_EQ" }] })),
    { ...refuse, args: [{ index: command, value: last, op: "SCMP_CMP_GT" }] },
  ];
}

/**
 * Refuses to reserve space on the disk, so that only writing takes space. A reservation of a terabyte takes
 * milliseconds, and no watch of the disk is that fast. The C library's posix_fallocate writes instead.
 */
function reservations(): Rule[] {
  const mode = 1;
  const request = 1;
  // seccomp cannot compare a masked value for "is not", so there is one rule for each bit that may differ.
  const others = Array.from({ length: BITS - FIRST_BIT }, (_, at): Rule => {
    const bit = 2 ** (FIRST_BIT + at);
    const isSet = Math.floor(RESERVES_SPACE / bit) % 2 === 1;
    return {
      names: ["ioctl"],
      action: "SCMP_ACT_ALLOW",
      args: [{ index: request, value: bit, valueTwo: isSet ? 0 : bit, op: "SCMP_CMP_MASKED_EQ" }],
    };
  });
  return [
    ...others,
    allowWhen(["fallocate"], [[mode, PUNCH_HOLE]]),
    {
      names: ["fallocate"],
      action: "SCMP_ACT_ERRNO",
      errnoRet: EOPNOTSUPP,
      args: [{ index: mode, value: PUNCH_HOLE, op: "SCMP_CMP_NE" }],
    },
  ];
}
