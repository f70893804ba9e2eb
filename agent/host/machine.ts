/** Facts about this machine and its load, from /proc. */

import { readFileSync, statfsSync } from "node:fs";
import { cpus, hostname, uptime } from "node:os";
import type { NodeFacts, NodeLoad } from "../../shared/agent-api/routes.ts";
import { machineId } from "../../shared/machine-id.ts";
import { type HostLimits, readHostLimits } from "./limits.ts";

type Load = Pick<NodeLoad, "cpuCount" | "cpuPercent" | "memoryTotalBytes" | "memoryUsedBytes" | "disks">;

export interface Machine {
  readonly facts: NodeFacts["machine"];
  /** The same for every program on this kernel and in this network (`machine-id.ts`). */
  readonly id: string;
  /** The same until the kernel is started again. */
  readonly bootId: string;
  /** Flags of the processor, as the kernel names them, divided by spaces. */
  readonly cpuFlags: string;
  load(): Load;
  /** Bytes that the machine could give to new processes. */
  freeMemory(): number;
  limits(): HostLimits;
  /** Milliseconds since the kernel was started, with the time that the machine slept; no change of the clock moves it. */
  sinceBoot(): number;
}

export function hostMachine(directories: readonly string[]): Machine {
  const state = { busy: 0, total: 0 };

  // The average since the last call, which is the time between two reports.
  const cpuPercent = (): number => {
    const times = (/^cpu +(.*)$/m.exec(read("/proc/stat"))?.[1] ?? "").split(" ").map(Number);
    const total = times.slice(0, 8).reduce((sum, time) => sum + time, 0);
    const busy = total - (times[3] ?? 0) - (times[4] ?? 0);
    const share = total === state.total ? 0 : (busy - state.busy) / (total - state.total);
    Object.assign(state, { busy, total });
    return Math.round(share * 1_000) / 10;
  };

  return {
    facts: readFacts(),
    id: machineId() ?? hostname(),
    bootId: read("/proc/sys/kernel/random/boot_id").trim() || hostname(),
    cpuFlags: /^(?:flags|Features)\s*: (.*)$/m.exec(read("/proc/cpuinfo"))?.[1]?.trim() ?? "",
    load() {
      const { total, available } = memory();
      return {
        cpuCount: cpus().length,
        cpuPercent: cpuPercent(),
        memoryTotalBytes: total,
        memoryUsedBytes: total - available,
        disks: disks(directories),
      };
    },
    freeMemory: () => memory().available,
    limits: () => readHostLimits(),
    sinceBoot: () => uptime() * 1_000,
  };
}

function readFacts(): NodeFacts["machine"] {
  const text = read("/proc/cpuinfo");
  const field = (name: string) => new RegExp(`^${name}\\s*: (.*)$`, "m").exec(text)?.[1]?.trim() ?? "";
  return {
    cpuFamily: field("cpu family"),
    cpuModel: field("model"),
    cpuModelName: field("model name"),
    cpuArchitecture: process.arch === "x64" ? "x86_64" : process.arch,
  };
}

function memory(): { total: number; available: number } {
  const text = read("/proc/meminfo");
  const bytes = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB$`, "m").exec(text)?.[1] ?? 0) * 1024;
  return { total: bytes("MemTotal"), available: bytes("MemAvailable") };
}

function disks(directories: readonly string[]): NodeLoad["disks"] {
  const mounts = read("/proc/self/mounts")
    .split("\n")
    .map((line) => line.split(" "));
  const found = new Map<string, NodeLoad["disks"][number]>();
  for (const directory of directories) {
    const [device = "", mountPoint = "/", filesystemType = ""] = mounts
      .filter(([, point = ""]) => point === "/" || directory === point || directory.startsWith(`${point}/`))
      .reduce((best, mount) => ((mount[1] ?? "").length >= (best[1] ?? "").length ? mount : best), [""]);
    try {
      const { blocks, bfree, bsize } = statfsSync(mountPoint);
      const totalBytes = blocks * bsize;
      found.set(mountPoint, { mountPoint, device, filesystemType, totalBytes, usedBytes: totalBytes - bfree * bsize });
    } catch {
      // The file system has just been unmounted.
    }
  }
  return [...found.values()];
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
