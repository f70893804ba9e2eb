/** Faults of a machine as changes of healthy evidence, each with the check that must find it. */

import {
  type Change,
  certificate,
  changed,
  counted,
  disk,
  docker,
  file,
  finding,
  node,
  objects,
  program,
  some,
} from "./changes.ts";
import { NOW, OWN_NODE } from "./healthy.ts";

/** Docker stops: nothing that needs it can be seen, and the agent is not ready. */
export const dockerStopped: Change = (evidence) => ({
  docker: { ...some(evidence.docker), problem: "connect ENOENT /var/run/docker.sock", version: "" },
  objects: undefined,
  ...program("agent", { failing: { engine: "the Docker daemon does not answer" } })(evidence),
});

/** The database takes no writes: the orchestrator says so, and is not ready. */
const databaseReadOnly: Change = (evidence) => ({
  database: {
    kind: "SQLite",
    path: "/var/lib/svc/orchestrator/svc.db",
    problem: "attempt to write a readonly database",
    sort: "read-only",
  },
  ...program("orchestrator", { failing: { database: "failed: attempt to write a readonly database" } })(evidence),
});

/** The agent has ended: its ports are free, its node is not heard of. */
export const agentDown: Change = (evidence) => ({
  ...program("agent", { pid: undefined, supervised: false, failing: {}, unit: undefined })(evidence),
  ports: some(evidence.ports).map((one) => (one.program === "agent" ? { ...one, by: undefined } : one)),
  nodes: [{ ...OWN_NODE, status: "unhealthy" }],
});

const expired = { from: NOW - 9_000_000, until: NOW - 1_000 };
const container = (name: string, state: string, slot: string | undefined = "svc-2") => ({
  id: "e".repeat(64),
  name,
  state,
  slot,
});

export const FAULTS: readonly (readonly [fault: string, check: string, change: Change, evidence: RegExp])[] = [
  [
    "CRIU is removed",
    "criu.missing",
    () => ({ criu: { path: "/opt/svc/bin/criu", version: undefined, problem: "not installed" } }),
    /\/opt\/svc\/bin\/criu/,
  ],
  [
    "CRIU cannot dump",
    "criu.dump",
    () => ({ criu: { path: "/opt/svc/bin/criu", version: "4.1", problem: "Error: vdso" } }),
    /4\.1: Error: vdso/,
  ],
  ["Docker is stopped", "docker.silent", dockerStopped, /ENOENT/],
  ["Docker lost the runtime", "docker.runtime", docker({ runtime: undefined }), /lists no runtime/],
  ["svc-runc is not there", "docker.runtime", docker({ runtimeRuns: false }), /svc-runc/],
  ["Docker has no seccomp", "docker.seccomp", docker({ security: [] }), /no security options/],
  [
    "a network has the subnet",
    "docker.network-taken",
    ({ docker: of }) => ({
      docker: changed(of, {
        facts: { ...of?.facts, routes: [{ range: "10.213.4.0/24", words: "10.213.4.0/24 of the link eth1" }] },
      }),
    }),
    /eth1/,
  ],
  ["a disk is 97 % full", "disks.full", disk({ freeBytes: 3 * 2 ** 30 }), /97 % used/],
  ["there are no inodes left", "disks.inodes", disk({ freeInodes: 10 }), /10 of 6000000 inodes/],
  ["a disk is read-only", "disks.read-only", disk({ readOnly: true }), /mounted at \//],
  [
    "the clock goes back",
    "clock.back",
    ({ clock }) => ({ clock: changed(clock, { newest: { path: "/var/lib/svc/x", at: NOW + 3_600_000 } }) }),
    /2026-11-20T13:00/,
  ],
  ["a node's clock is off", "clock.nodes", node({ clockSkewMs: 90_000 }), /90000 ms/],
  [
    "a port is taken",
    "ports.taken",
    (evidence) => ({ ports: some(evidence.ports).map((one) => ({ ...one, by: { pid: 99, name: "nginx" } })) }),
    /3000 \(SVC_API_PORT\): nginx, process 99/,
  ],
  ["a certificate has expired", "certificates.expired", certificate(expired), /ended at/],
  ["a certificate is of the future", "certificates.expired", certificate({ from: NOW + 5_000 }), /clock/],
  ["a certificate is damaged", "certificates.unreadable", certificate({ problem: "bad base64" }), /bad base64/],
  [
    "the domain's certificate is for other names",
    "certificates.site",
    program("orchestrator", {
      certificate: "the certificate is not for every name below a.example: it has DNS:b.example",
    }),
    /^orchestrator: .*DNS:b.example/,
  ],
  [
    "a file is open to all",
    "files.access",
    file("/etc/svc/agent.env", { mode: 0o644, uid: 0, gid: 0 }),
    /0644 0:0 and should be 0600/,
  ],
  [
    "a file is another's",
    "files.access",
    file("/etc/svc/admin-token", { mode: 0o600, uid: 0, gid: 0 }),
    /should be 0600 990:990/,
  ],
  ["a file with keys is gone", "files.missing", file("/etc/svc/admin-token", undefined), /admin-token/],
  ["the database is read-only", "database.broken", databaseReadOnly, /readonly/],
  [
    "the firewall is flushed",
    "firewall.table",
    ({ firewall }) => ({ firewall: changed(firewall, { chains: undefined }) }),
    /no table inet svc/,
  ],
  [
    "a chain is flushed",
    "firewall.table",
    ({ firewall }) => ({ firewall: changed(firewall, { chains: ["forward"] }) }),
    /lacks out/,
  ],
  [
    "the bridge is deleted",
    "firewall.bridge",
    ({ firewall }) => ({ firewall: changed(firewall, { bridge: false }) }),
    /svc0/,
  ],
  [
    "forwarding is off",
    "firewall.forwarding",
    ({ kernel }) => ({ kernel: changed(kernel, { forwarding: false }) }),
    /ip_forward/,
  ],
  ["ufw drops packets", "firewall.collision", finding("network.forward"), /as seen \(active here: ufw\)/],
  ["DNS is dead", "dns.silent", () => ({ dns: [{ address: "192.0.2.53", answers: false }] }), /192\.0\.2\.53/],
  ["no name server is named", "dns.silent", () => ({ dns: [] }), /names none/],
  ["the agent has ended", "programs.stopped", agentDown, /agent: nothing supervises it/],
  [
    "the orchestrator hangs",
    "programs.silent",
    program("orchestrator", { silent: "no answer within 5 s" }),
    /no answer within 5 s/,
  ],
  [
    "a program lacks rights",
    "programs.capabilities",
    program("agent", { capabilities: 0x20n }),
    /CAP_NET_ADMIN, CAP_SYS_PTRACE/,
  ],
  [
    "the agent may not set a sandbox's clocks",
    "programs.capabilities",
    program("agent", { capabilities: 0xfdff_ffffn }),
    /^CAP_SYS_TIME$/,
  ],
  [
    "a program is not ready",
    "programs.not-ready",
    program("agent", { failing: { lease: "has lapsed" } }),
    /agent: lease: has lapsed/,
  ],
  ["the blob store refuses", "blobs.store", finding("blobs.store"), /as seen/],
  [
    "another node is away",
    "nodes.away",
    () => ({ nodes: [OWN_NODE, { ...OWN_NODE, id: "n2", own: false, status: "unhealthy" }] }),
    /n2/,
  ],
  [
    "an orphan container runs",
    "orphans.objects",
    (evidence) =>
      objects({ containers: [...some(evidence.objects).containers, container("svc-orphan", "running")] })(evidence),
    /without a record: orphan/,
  ],
  [
    "a dead container is left",
    "orphans.objects",
    (evidence) =>
      objects({ containers: [...some(evidence.objects).containers, container("svc-orphan", "exited", undefined)] })(
        evidence,
      ),
    /svc-orphan is exited/,
  ],
  [
    "a disk is left",
    "orphans.objects",
    (evidence) => objects({ disks: [...some(evidence.objects).disks, "f".repeat(64)] })(evidence),
    /2 disks have no container, and paused sandboxes .* account for 1: .*ffff/,
  ],
  [
    "disks are left where none came from another node",
    "orphans.objects",
    (evidence) => counted("svc_disks_fetched", 0)(evidence),
    /a disk of a container that does not exist: eeee/,
  ],
  [
    "a link is left",
    "orphans.objects",
    (evidence) => objects({ links: [...some(evidence.objects).links, "svc-77"] })(evidence),
    /svc-77/,
  ],
  [
    "a container is gone",
    "invariants.broken",
    (evidence) =>
      objects({ containers: some(evidence.objects).containers.slice(1), disks: [], annotated: [] })(evidence),
    /record of running says running/,
  ],
  [
    "a namespace is gone",
    "invariants.broken",
    objects({ namespaces: ["svc-3", "svc-4"] }),
    /svc-2, which does not exist/,
  ],
  [
    "an address is not pinned",
    "invariants.broken",
    objects({ pinned: ["svc-3"] }),
    /svc-2 of svc-running is not pinned/,
  ],
  [
    "a sandbox outlives its end",
    "invariants.broken",
    ({ records }) => ({
      records: changed(records, { running: [{ sandboxID: "running", endAt: "2026-11-20T11:00:00Z" }] }),
    }),
    /its end was 2026-11-20T11/,
  ],
  [
    "the metadata service answers",
    "egress.metadata",
    () => ({ egress: { slot: "svc-2", answered: "HTTP/1.1 200 OK" } }),
    /200 OK/,
  ],
  [
    "the kernel is too old",
    "kernel.old-kernel",
    ({ machine }) => ({ machine: { ...machine, release: "5.4.0" } }),
    /Linux 5\.4\.0/,
  ],
  [
    "memory is too small",
    "kernel.memory",
    ({ machine }) => ({ machine: { ...machine, memoryBytes: 2 ** 20 } }),
    /it has 1 MiB/,
  ],
  [
    "programs cannot be executed",
    "kernel.programs-noexec",
    ({ machine }) => ({ machine: { ...machine, noexec: ["/opt"] } }),
    /\/opt/,
  ],
];
