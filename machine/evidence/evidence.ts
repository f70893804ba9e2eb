/** What was seen of a machine and of its platform at one time. A part that could not be seen is undefined. */

import type { Program } from "../base/instance.ts";
import type { NodeRecords, ObjectsSeen } from "../invariants/invariants.ts";
import type { VersionFacts } from "../known/holes.mjs";

export interface Disk {
  readonly path: string;
  /** What the platform keeps there. */
  readonly holds: string;
  readonly mountPoint: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly freeInodes: number;
  /** 0: the file system makes them as it needs them. */
  readonly totalInodes: number;
  readonly readOnly: boolean;
}

export interface OwnFile {
  readonly path: string;
  /** The most that others may do with it, and whose it is. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Undefined: it is not there. */
  readonly is: { readonly mode: number; readonly uid: number; readonly gid: number } | undefined;
}

export interface DockerSeen {
  readonly socket: string;
  /** Why it does not answer. */
  readonly problem: string | undefined;
  readonly version: string;
  readonly storageDriver: string;
  readonly liveRestore: boolean;
  readonly security: readonly string[];
  /** Path of the runtime `svc`, if it is registered. */
  readonly runtime: string | undefined;
  readonly runtimeRuns: boolean;
  /** As the checks of `up` want them. */
  readonly facts: object;
}

export interface CriuSeen {
  readonly path: string;
  readonly version: string | undefined;
  /** Why a small process could not be dumped and restored. */
  readonly problem: string | undefined;
  /** It failed under a filter of system calls, as containers have one: that says nothing of the machine. */
  readonly filtered?: boolean;
}

export interface FirewallSeen {
  /** Chains of the platform's own table; undefined: there is no such table. */
  readonly chains: readonly string[] | undefined;
  readonly bridge: boolean;
  /** Programs that write rules of their own and are active: `ufw`, `firewalld`. */
  readonly others: readonly string[];
}

export interface PortSeen {
  readonly program: Program;
  readonly setting: string;
  readonly port: number;
  /** Who listens there. */
  readonly by: { readonly pid: number; readonly name: string } | undefined;
}

export interface Certificate {
  readonly path: string;
  readonly from: number;
  readonly until: number;
  /** Why it cannot be read. */
  readonly problem: string | undefined;
}

export interface DatabaseSeen {
  readonly kind: "SQLite" | "PostgreSQL";
  readonly path: string;
  /** Why it cannot be used: not there, read-only, damaged, no answer. */
  readonly problem: string | undefined;
  readonly sort: "missing" | "read-only" | "damaged" | "silent" | undefined;
}

export interface ProgramSeen {
  readonly program: Program;
  readonly pid: number | undefined;
  /** By systemd or our own supervisor. */
  readonly supervised: boolean;
  /** Why it does not answer. */
  readonly silent: string | undefined;
  /** Its own checks of readiness that fail, by name. */
  readonly failing: Readonly<Record<string, string>>;
  /** What it says against the certificate that it shows to clients on other machines. */
  readonly certificate: string | undefined;
  /** Version and commit of the process, and of what is installed. */
  readonly version: string | undefined;
  readonly installed: string | undefined;
  /** What holds for the process, which a shell does not see: its limit of files, its groups, what it may do. */
  readonly files: number | undefined;
  readonly groups: readonly number[];
  readonly capabilities: bigint | undefined;
  /** Another file with settings than the one that it has read. */
  readonly settingsChanged: boolean;
  /** With systemd. */
  readonly unit: UnitSeen | undefined;
}

/** systemd has no such unit: `up` makes it. */
export const NO_UNIT = "not there";

export interface UnitSeen {
  readonly name: string;
  readonly state: string;
  /** How often systemd has started it again by itself since it was started. */
  readonly restarts: number;
  /** Since its last start; undefined: it does not run. */
  readonly runningSeconds: number | undefined;
  /** Its file, or one of its drop-ins, has changed since systemd has read it. */
  readonly isStale: boolean;
}

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What a running program counts. */
export interface MetricsSeen {
  readonly program: Program;
  readonly samples: readonly Sample[];
}

export interface NodeSeen {
  readonly id: string;
  readonly own: boolean;
  readonly status: string;
  readonly version: string;
  readonly clockSkewMs: number | null;
  readonly lastHeardAt: string;
  readonly findings: readonly {
    readonly id: string;
    readonly problem: string;
    readonly evidence: string;
    readonly wayOut: string;
  }[];
}

export interface Evidence {
  readonly at: number;
  readonly instance: {
    readonly name: string;
    readonly network: string;
    readonly role: string;
    readonly programs: readonly Program[];
  };
  /** As the checks of `up` want them. */
  readonly machine: object | undefined;
  readonly kernel:
    | {
        readonly release: string;
        readonly forwarding: boolean | undefined;
        /** Device files and the modules that make them. */
        readonly devices: readonly { readonly path: string; readonly module: string; readonly is: boolean }[];
        readonly limits: readonly { readonly name: string; readonly used: number; readonly max: number }[];
      }
    | undefined;
  readonly disks: readonly Disk[] | undefined;
  readonly files: readonly OwnFile[] | undefined;
  readonly clock:
    | {
        readonly newest: { readonly path: string; readonly at: number } | undefined;
        /** Undefined: nothing on this machine keeps its clock, or says so. */
        readonly synchronized: boolean | undefined;
      }
    | undefined;
  readonly docker: DockerSeen | undefined;
  readonly versions: VersionFacts | undefined;
  readonly criu: CriuSeen | undefined;
  readonly firewall: FirewallSeen | undefined;
  readonly dns: readonly { readonly address: string; readonly answers: boolean }[] | undefined;
  readonly ports: readonly PortSeen[] | undefined;
  readonly certificates: readonly Certificate[] | undefined;
  /** Names of the platform's domain by which this machine does not reach it, and why. */
  readonly site: { readonly unreached: readonly string[] } | undefined;
  readonly database: DatabaseSeen | undefined;
  readonly programs: readonly ProgramSeen[] | undefined;
  readonly metrics: readonly MetricsSeen[] | undefined;
  /** Of the first look; at the first look there are none. */
  readonly metricsBefore?: readonly MetricsSeen[] | undefined;
  readonly nodes: readonly NodeSeen[] | undefined;
  /** Of this machine's node. */
  readonly objects: ObjectsSeen | undefined;
  readonly records: NodeRecords | undefined;
  /** Loop devices and mounts below the platform's directories whose file is gone. */
  readonly leftovers: readonly string[] | undefined;
  readonly egress: { readonly slot: string; readonly answered: string | undefined } | undefined;
}
