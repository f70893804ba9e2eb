/**
 * Limits of the kernel that all programs of the machine share. `docs/operating/limits.md` lists these and the ones that need no
 * watch, and how each is bounded for one sandbox.
 */

import { readFileSync } from "node:fs";

interface HostLimit {
  readonly used: number;
  readonly max: number;
}

export type HostLimitName =
  | "connections"
  | "open_files"
  | "processes"
  | "terminals"
  | "async_io"
  | "keys_of_root"
  | "signals_of_root"
  | "tcp_memory_pages"
  | "udp_memory_pages"
  | "orphaned_connections";

/** Without those that the kernel does not have. */
export type HostLimits = Partial<Readonly<Record<HostLimitName, HostLimit>>>;

type Read = (path: string) => string;

/** @param read returns an empty text for a file that does not exist */
export function readHostLimits(read: Read = tryRead): HostLimits {
  const system = (name: string) => numbers(read(`/proc/sys/${name}`));
  const threads = /^[^/]*\/(\d+) /.exec(read("/proc/loadavg"))?.[1];
  const [files, , mostFiles] = system("fs/file-nr");
  const sockets = read("/proc/net/sockstat");
  const [, keys, mostKeys] = /^ *0: +\d+ \d+\/\d+ (\d+)\/(\d+) /m.exec(read("/proc/key-users")) ?? [];
  const [, signals, mostSignals] = /^SigQ:\s+(\d+)\/(\d+)$/m.exec(read("/proc/self/status")) ?? [];
  const [terminals] = system("kernel/pty/max");
  const [forTheHost = 0] = system("kernel/pty/reserve");
  const all: Record<HostLimitName, readonly [used: unknown, max: unknown]> = {
    connections: [
      system("net/netfilter/nf_conntrack_count")[0],
      // Zero: no limit.
      system("net/netfilter/nf_conntrack_max")[0] || undefined,
    ],
    open_files: [files, mostFiles],
    processes: [threads, least(system("kernel/pid_max")[0], system("kernel/threads-max")[0])],
    terminals: [system("kernel/pty/nr")[0], terminals === undefined ? undefined : terminals - forTheHost],
    async_io: [system("fs/aio-nr")[0], system("fs/aio-max-nr")[0]],
    keys_of_root: [keys, mostKeys],
    signals_of_root: [signals, mostSignals],
    tcp_memory_pages: [field(sockets, "TCP", "mem"), system("net/ipv4/tcp_mem")[2]],
    udp_memory_pages: [field(sockets, "UDP", "mem"), system("net/ipv4/udp_mem")[2]],
    orphaned_connections: [field(sockets, "TCP", "orphan"), system("net/ipv4/tcp_max_orphans")[0]],
  };
  const known = Object.entries(all).flatMap(([name, [used, max]]) =>
    used === undefined || max === undefined ? [] : [[name, { used: Number(used), max: Number(max) }] as const],
  );
  return Object.fromEntries(known);
}

function field(sockstat: string, protocol: string, name: string): string | undefined {
  return new RegExp(`^${protocol}:.* ${name} (\\d+)`, "m").exec(sockstat)?.[1];
}

function least(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : Math.min(one, other);
}

function numbers(text: string): number[] {
  return text.trim() === "" ? [] : text.trim().split(/\s+/).map(Number);
}

function tryRead(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
