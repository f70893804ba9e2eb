/** A container's whole configuration from its spec: limits and hardening. Pure. */

import { defined } from "../../shared/defined.ts";
import { dockerLimits } from "./cgroup/limits.ts";
import type { ContainerSpec } from "./containers.ts";

/** Capabilities that sudo, apt, chown and servers need (sshd and haproxy call chroot); never NET_RAW, NET_ADMIN, SYS_ADMIN, SYS_PTRACE, MKNOD. */
const CAPABILITIES = [
  "AUDIT_WRITE",
  "CHOWN",
  "DAC_OVERRIDE",
  "FOWNER",
  "FSETID",
  "KILL",
  "NET_BIND_SERVICE",
  "SETFCAP",
  "SETGID",
  "SETPCAP",
  "SETUID",
  "SYS_CHROOT",
] as const;

/** The paths that Docker masks by default, and others that reveal facts of the host's memory, kernel and devices. */
const MASKED_PATHS = [
  "/proc/acpi",
  "/proc/asound",
  "/proc/buddyinfo",
  "/proc/interrupts",
  "/proc/iomem",
  "/proc/ioports",
  "/proc/kallsyms",
  "/proc/kcore",
  "/proc/keys",
  "/proc/kpagecgroup",
  "/proc/kpagecount",
  "/proc/kpageflags",
  "/proc/latency_stats",
  "/proc/modules",
  "/proc/pagetypeinfo",
  "/proc/sched_debug",
  "/proc/schedstat",
  "/proc/scsi",
  "/proc/slabinfo",
  "/proc/softirqs",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/vmallocinfo",
  "/proc/zoneinfo",
  "/sys/devices/virtual/powercap",
  "/sys/firmware",
  "/sys/kernel/slab",
  // Not /sys/kernel/debug, security and tracing: file systems of their own, which are not mounted in a container, and
  // each masked directory is a tmpfs that costs every dump and restore three milliseconds.
] as const;

const READ_ONLY_PATHS = [
  "/proc/bus",
  "/proc/fs",
  "/proc/irq",
  "/proc/sys",
  "/proc/sysrq-trigger",
  // With cgroups v1 and a private cgroup namespace the runtime leaves the directory above the controllers writable.
  "/sys/fs/cgroup",
] as const;

/** Host name inside the container: the same for all sandboxes, because a pooled container has no owner yet. */
const HOSTNAME = "sandbox";

/** Mount point of the envd runtime inside the container. */
export const RUNTIME_MOUNT = "/svc";

const PIDS = 4096;
const SHM_BYTES = 64 * 1024 * 1024;
// The kernel ends sandboxes before programs of the host; envd raises the score further for its children.
const OOM_SCORE = 100;

export interface NodeOptions {
  readonly nodeId: string;
  /** The OCI runtime that reads the agent's annotations. */
  readonly runtime: string;
  readonly seccomp: string;
  /** Descriptor limit of Docker itself: it cannot grant more. */
  readonly openFiles: number;
  /** Limits that the kernel counts for a user id over all sandboxes, by Docker's name; -1: no limit. */
  readonly userLimits: Readonly<Record<string, number>>;
  readonly diskLimit: boolean;
  /** Images declare it by the label svc.sudo=false. */
  readonly sudo: boolean;
}

/** The configuration in Docker's API; docker.ts passes it on unchanged. */
export function containerOptions(spec: ContainerSpec, node: NodeOptions) {
  const [program = "", ...rest] = spec.command;
  return {
    name: spec.name,
    Image: spec.build.image,
    Hostname: HOSTNAME,
    Entrypoint: [program],
    Cmd: rest,
    Env: [...spec.env],
    User: "0:0",
    WorkingDir: "/",
    Tty: false,
    OpenStdin: false,
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    StopSignal: "SIGKILL",
    // An image may declare one: Docker would run its command as root in every sandbox and pooled container, and wait for frozen ones.
    Healthcheck: { Test: ["NONE"] },
    Labels: {
      "svc.node": node.nodeId,
      "svc.template": spec.build.templateId,
      "svc.build": spec.build.buildId,
    },
    HostConfig: {
      Runtime: node.runtime,
      // The agent connects the network itself: svc-runc joins the slot's namespace.
      NetworkMode: "none",
      Dns: [spec.resolver],
      DnsSearch: ["."],
      ExtraHosts: [`${HOSTNAME}:127.0.1.1`],
      ...dockerLimits(spec.resources),
      ...defined({ CpusetCpus: spec.cpus }),
      PidsLimit: PIDS,
      ShmSize: SHM_BYTES,
      OomScoreAdj: OOM_SCORE,
      Ulimits: [
        { Name: "nofile", Soft: node.openFiles, Hard: node.openFiles },
        // A core pattern may be a program that the kernel starts on the host.
        { Name: "core", Soft: 0, Hard: 0 },
        ...Object.entries(node.userLimits).map(([Name, most]) => ({ Name, Soft: most, Hard: most })),
      ],
      ...(node.diskLimit && spec.resources.diskSizeMB > 0
        ? { StorageOpt: { size: `${spec.resources.diskSizeMB}M` } }
        : {}),
      IpcMode: "private",
      CgroupnsMode: "private" as const,
      Privileged: false,
      CapDrop: ["ALL"],
      CapAdd: [...CAPABILITIES],
      // Said either way: the daemon may have "no-new-privileges" in its settings, and then no sandbox could use sudo.
      SecurityOpt: [`seccomp=${node.seccomp}`, `no-new-privileges=${node.sudo ? "false" : "true"}`],
      MaskedPaths: [...MASKED_PATHS],
      ReadonlyPaths: [...READ_ONLY_PATHS],
      Sysctls: {
        // Repeated here: Docker would set its own, wider default for ICMP sockets.
        "net.ipv4.ping_group_range": "1 0",
        "net.ipv4.ip_unprivileged_port_start": "0",
      },
      Binds: [`${spec.runtimeDirectory}:${RUNTIME_MOUNT}:ro`],
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
      Init: false,
      AutoRemove: false,
    },
  };
}
