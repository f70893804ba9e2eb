/** The evidence of a healthy machine with a platform, another instance beside it, and a sandbox of each kind. */

import type { Evidence, MetricsSeen, NodeSeen, ProgramSeen, UnitSeen } from "../../../machine/evidence/evidence.ts";

export const NOW = Date.parse("2026-11-20T12:00:00Z");
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const GIB = 2 ** 30;

const program = (name: ProgramSeen["program"], pid: number): ProgramSeen => ({
  program: name,
  pid,
  supervised: true,
  silent: undefined,
  failing: {},
  certificate: undefined,
  version: name === "orchestrator" ? "0.1.0 (abc)" : undefined,
  installed: "0.1.0 (abc)",
  files: 1_048_576,
  groups: [],
  capabilities: name === "agent" ? 0xffff_ffffn : 0n,
  settingsChanged: false,
  unit: undefined,
});

export const OWN_NODE: NodeSeen = {
  id: "node-1",
  own: true,
  status: "ready",
  version: "0.1.0",
  clockSkewMs: 3,
  lastHeardAt: new Date(NOW - 1_000).toISOString(),
  findings: [],
};

/** Restarted once, and twice long ago: that is no trouble. */
export const UNIT: UnitSeen = {
  name: "svc-agent.service",
  state: "active (running)",
  restarts: 3,
  runningSeconds: 90_000,
  isStale: false,
};

/** One failed create of many, a slow one, and a pool that is full. */
const METRICS: readonly MetricsSeen[] = [
  {
    program: "orchestrator",
    samples: [
      { name: "nodejs_eventloop_lag_p99_seconds", labels: {}, value: 0.02 },
      { name: "svc_sandbox_create_failures_total", labels: { code: "no_space" }, value: 6 },
      { name: "svc_sandbox_create_duration_seconds_count", labels: { path: "warm", result: "ok" }, value: 200 },
      { name: "svc_sandbox_create_duration_seconds_bucket", labels: { path: "warm", le: "1" }, value: 198 },
      { name: "svc_sandbox_create_duration_seconds_bucket", labels: { path: "warm", le: "+Inf" }, value: 200 },
      { name: "svc_webhook_queue", labels: {}, value: 12 },
    ],
  },
  {
    program: "agent",
    samples: [
      { name: "nodejs_eventloop_lag_p99_seconds", labels: {}, value: 0.03 },
      { name: "svc_pool_size", labels: { build: "b1", state: "ready" }, value: 3 },
      { name: "svc_pool_size", labels: { build: "b1", state: "wanted" }, value: 3 },
      { name: "svc_pool_size", labels: { build: "b1", state: "asked" }, value: 8 },
      { name: "svc_disks_fetched", labels: {}, value: 1 },
    ],
  },
];

const id = (letter: string) => letter.repeat(64);

export function healthy(): Evidence {
  return {
    at: NOW,
    instance: { name: "", network: "svc", role: "", programs: ["orchestrator", "agent"] },
    machine: {
      checkout: "",
      programs: ["orchestrator", "agent"],
      release: "6.12.0",
      mounts: [{ place: "/sys/fs/cgroup", options: [] }],
      memoryBytes: 8 * GIB,
      freeBytes: 100 * GIB,
      readOnly: [],
      noexec: [],
    },
    kernel: {
      release: "6.12.0",
      forwarding: true,
      devices: [
        { path: "/dev/fuse", module: "fuse", is: true },
        { path: "/dev/loop-control", module: "loop", is: true },
      ],
      limits: [{ name: "open files", used: 4_000, max: 800_000 }],
    },
    disks: [
      {
        path: "/var/lib/svc/agent",
        holds: "node, database",
        mountPoint: "/",
        freeBytes: 60 * GIB,
        totalBytes: 100 * GIB,
        freeInodes: 5_000_000,
        totalInodes: 6_000_000,
        readOnly: false,
      },
    ],
    files: [
      { path: "/etc/svc/agent.env", mode: 0o600, uid: 0, gid: 0, is: { mode: 0o600, uid: 0, gid: 0 } },
      { path: "/etc/svc/admin-token", mode: 0o600, uid: 990, gid: 990, is: { mode: 0o600, uid: 990, gid: 990 } },
      // Closed further than it must be: that is no failure.
      {
        path: "/var/lib/svc/orchestrator/svc.db",
        mode: 0o644,
        uid: 990,
        gid: 990,
        is: { mode: 0o600, uid: 990, gid: 990 },
      },
    ],
    clock: { newest: { path: "/var/lib/svc/orchestrator/svc.db-wal", at: NOW - 500 }, synchronized: undefined },
    docker: {
      socket: "/var/run/docker.sock",
      problem: undefined,
      version: "26.1.5",
      storageDriver: "overlay2",
      liveRestore: true,
      security: ["name=apparmor", "name=seccomp,profile=builtin"],
      runtime: "/opt/svc/bin/svc-runc",
      runtimeRuns: true,
      facts: {
        subnet: "10.213.0.0/16",
        networkName: "svc",
        docker: { SecurityOptions: ["name=seccomp,profile=builtin"], DockerRootDir: "/var/lib/docker" },
        dockerVersion: { Components: [{ Name: "Engine" }] },
        // Docker's own bridge, and the links of another instance.
        routes: [
          { range: "172.17.0.0/16", words: "172.17.0.0/16 of the link docker0" },
          { range: "10.214.0.2", words: "10.214.0.2 of the link svctest-2" },
        ],
      },
    },
    versions: { runc: { version: "1.3.3", changes: "" }, kernel: { release: "6.12.0", build: "" } },
    criu: { path: "/opt/svc/bin/criu", version: "4.2.1", problem: undefined },
    firewall: {
      chains: ["before", "arriving", "forward", "out", "pass", "refuse", "input", "local", "output", "postrouting"],
      bridge: true,
      others: ["ufw"],
    },
    dns: [{ address: "192.0.2.53", answers: true }],
    ports: [
      { program: "orchestrator", setting: "SVC_API_PORT", port: 3000, by: { pid: 10, name: "node" } },
      { program: "agent", setting: "SVC_AGENT_PORT", port: 5010, by: { pid: 20, name: "node" } },
    ],
    certificates: [
      {
        path: "/var/lib/svc/agent/membership/membership.json",
        from: NOW - 2 * DAY_MS,
        until: NOW + 5 * DAY_MS,
        problem: undefined,
      },
    ],
    site: { unreached: [] },
    database: { kind: "SQLite", path: "/var/lib/svc/orchestrator/svc.db", problem: undefined, sort: undefined },
    programs: [program("orchestrator", 10), { ...program("agent", 20), unit: UNIT }],
    metrics: METRICS,
    nodes: [OWN_NODE],
    objects: {
      containers: [
        { id: id("a"), name: "svc-running", state: "running", slot: "svc-2" },
        { id: id("b"), name: "svc-paused", state: "exited", slot: "svc-9" },
        { id: id("c"), name: "svc-pool-1", state: "running", slot: "svc-3" },
        { id: id("d"), name: "svc-held", state: "exited", slot: undefined },
      ],
      namespaces: ["svc-2", "svc-3", "svc-4"],
      links: ["svc-2", "svc-3", "svc-4"],
      pinned: ["svc-2", "svc-3"],
      annotated: [id("a"), id("b"), id("c")],
      // The last is of a paused sandbox that came from another node, and has had no container here.
      disks: [id("a"), id("b"), id("c"), id("d"), id("e")],
    },
    records: {
      running: [{ sandboxID: "running", endAt: new Date(NOW + HOUR_MS).toISOString() }],
      paused: ["paused"],
      moving: [],
      held: ["svc-held"],
      unseen: 0,
    },
    leftovers: [],
    egress: { slot: "svc-2", answered: undefined },
  };
}
