/** Prometheus metrics of the agent: base units, few labels, never a sandbox id. */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { NodeLoad, SandboxDisk } from "../../shared/agent-api/routes.ts";
import type { Finding } from "../../shared/program/finding.ts";
import { COMMIT, VERSION } from "../../shared/version.ts";
import type { Traffic } from "../blobs/traffic.ts";
import type { HostLimits } from "../host/limits.ts";
import type { Reach } from "../network/reach/reach.ts";
import type { DiskAccount } from "../node-disk/account.ts";
import type { DiskReserve, WatchedDisk } from "../node-disk/reserve.ts";
import type { Values } from "../placeholders/values.ts";
import type { DiskWork } from "../sandbox-disks/disks.ts";
import type { PoolAccount } from "../sandboxes/pool/pool.ts";
import type { UploadQueue } from "../snapshots/beyond/uploads.ts";
import type { Admission } from "../snapshots/take/admission.ts";
import type { EgressTotals } from "../store/network-log.ts";
import type { VolumeUse } from "../volumes/volumes.ts";

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export interface InstrumentSources {
  readonly nodeId: string;
  readonly running: () => number;
  readonly starting: () => number;
  /** Running sandboxes that the agent holds because the disk is short. */
  readonly held: () => number;
  /** Running sandboxes that the agent holds because the node's lease has lapsed. */
  readonly withoutLease: () => number;
  readonly disks: DiskReserve["seen"];
  readonly sandboxDisk: DiskAccount["load"];
  readonly diskWork: () => DiskWork;
  readonly stored: Admission["used"];
  /** Disks of paused sandboxes that came from another node and have had no container here. */
  readonly fetchedDisks: () => number;
  readonly blobTraffic: Traffic["read"];
  /** By kind: snapshots, images. */
  readonly uploads: () => Readonly<Record<string, UploadQueue>>;
  /** When the certificate ends that this node shows to the platform's other machines, Unix milliseconds; undefined: it has not joined. */
  readonly certificateUntil: (() => number) | undefined;
  readonly pools: () => NodeLoad["pools"];
  readonly poolAccount: () => PoolAccount;
  readonly slots: () => number;
  readonly pendingRemovals: () => number;
  readonly placeholderUses: Values["results"];
  readonly orchestratorReached: () => boolean;
  /** Since the start of the agent. */
  readonly memoryKills: () => number;
  /** Decisions about connections of sandboxes, and their bytes, since the agent's start. */
  readonly egress: () => EgressTotals;
  readonly hostLimits: () => HostLimits;
  readonly ways: Reach["ways"];
  /** Ids of what the node cannot do now. */
  readonly findings: () => readonly Pick<Finding, "id">[];
  readonly volumes: () => readonly VolumeUse[];
  /** Requests for the content of volumes that have not ended. */
  readonly volumeRequests: () => number;
}

export interface Instruments {
  readonly contentType: string;
  text(): Promise<string>;
  started(path: "warm" | "cold", seconds: number): void;
  startFailed(): void;
  stopped(seconds: number): void;
  exited(reason: string): void;
  firewallRepaired(): void;
}

export function createInstruments(sources: InstrumentSources): Instruments {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const gauge = (name: string, help: string, labelNames: string[], read: (gauge: Gauge) => void): Gauge =>
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        read(this);
      },
    });

  gauge("svc_build_info", "Version and commit", ["version", "commit", "node"], (one) =>
    one.set({ version: VERSION, commit: COMMIT, node: sources.nodeId }, 1),
  );
  gauge("svc_sandboxes", "Sandboxes on this node", ["state"], (one) => {
    one.set({ state: "running" }, sources.running());
    one.set({ state: "starting" }, sources.starting());
  });
  gauge("svc_sandboxes_held", "Running sandboxes that the agent holds because the disk is short", [], (one) =>
    one.set(sources.held()),
  );
  gauge(
    "svc_sandboxes_without_lease",
    "Running sandboxes that the agent holds because no orchestrator has answered in time",
    [],
    (one) => one.set(sources.withoutLease()),
  );
  const ofDisks = (name: string, help: string, read: (disk: WatchedDisk) => number) =>
    gauge(name, help, ["disk"], (one) => {
      for (const [disk, seen] of Object.entries(sources.disks() ?? {})) one.set({ disk }, read(seen));
    });
  ofDisks("svc_disk_free_bytes", "Free bytes of the disk, as seen last", ({ space }) => space.freeBytes);
  ofDisks("svc_disk_reserve_bytes", "Bytes of the disk that sandboxes must leave free", ({ reserve }) => reserve.bytes);
  const ofSandboxDisk = (name: string, help: string, read: (disk: SandboxDisk) => number) =>
    gauge(name, help, ["disk"], (one) => {
      const account = sources.sandboxDisk();
      if (account !== undefined) one.set({ disk: "sandboxes" }, read(account));
    });
  ofSandboxDisk(
    "svc_disk_promised_bytes",
    "Disk sizes of running and paused sandboxes and of builds",
    ({ promisedBytes }) => promisedBytes,
  );
  ofSandboxDisk("svc_disk_used_bytes", "Bytes that these use, as last measured", ({ usedBytes }) => usedBytes);
  const counted = (name: string, help: string, labelNames: string[], read: (counter: Counter) => void): Counter =>
    new Counter({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset();
        read(this);
      },
    });
  const ofWork = (name: string, help: string, read: (work: DiskWork[keyof DiskWork]) => number) =>
    counted(name, help, ["work"], (one) => {
      for (const [work, done] of Object.entries(sources.diskWork())) one.inc({ work }, read(done));
    });
  ofWork(
    "svc_disk_work_total",
    "Disks made, copied ahead, and copied while their sandbox stood still",
    ({ count }) => count,
  );
  ofWork("svc_disk_work_seconds_total", "Time that these took", ({ seconds }) => seconds);
  gauge("svc_snapshot_stored_bytes", "Memory and disks of snapshots and paused sandboxes", [], (one) =>
    one.set(sources.stored().storedBytes),
  );
  gauge(
    "svc_disks_fetched",
    "Disks of paused sandboxes that came from another node, and have no container before these are resumed",
    [],
    (one) => one.set(sources.fetchedDisks()),
  );
  gauge("svc_snapshot_quota_bytes", "Quota of stored snapshots in bytes; 0: no quota", [], (one) =>
    one.set(sources.stored().quotaBytes),
  );
  counted(
    "svc_blob_bytes_total",
    "Bytes of snapshots and images by way: to_store, from_store, to_nodes, from_nodes",
    ["way"],
    (one) => {
      for (const [way, bytes] of Object.entries(sources.blobTraffic())) one.inc({ way }, bytes);
    },
  );
  const ofUploads = (name: string, help: string, read: (queue: UploadQueue) => number) =>
    gauge(name, help, ["kind"], (one) => {
      for (const [kind, queue] of Object.entries(sources.uploads())) one.set({ kind }, read(queue));
    });
  ofUploads(
    "svc_blob_uploads_waiting",
    "Snapshots and images that are not in the blob store yet, with the one under way and those that failed",
    ({ waiting }) => waiting,
  );
  ofUploads("svc_blob_uploads_waiting_bytes", "Bytes of these, where their size is known", ({ bytes }) => bytes);
  counted(
    "svc_blob_upload_failures_total",
    "Uploads to the blob store that failed; each is tried again",
    ["kind"],
    (one) => {
      for (const [kind, { failures }] of Object.entries(sources.uploads())) one.inc({ kind }, failures);
    },
  );
  const { certificateUntil } = sources;
  if (certificateUntil !== undefined)
    gauge(
      "svc_machine_certificate_expiry_timestamp_seconds",
      "When the certificate that this node shows to the platform's other machines expires, Unix time",
      [],
      (one) => one.set(certificateUntil() / 1000),
    );
  gauge("svc_pool_size", "Warm containers by build", ["build", "state"], (one) => {
    one.reset();
    for (const { buildId, ready, wanted } of sources.pools()) {
      one.set({ build: buildId, state: "ready" }, ready);
      one.set({ build: buildId, state: "wanted" }, wanted);
    }
    for (const { buildId, size } of sources.poolAccount().asked) one.set({ build: buildId, state: "asked" }, size);
  });
  gauge("svc_pool_memory_bytes", "Memory of warm containers: used, and bound", ["what"], (one) => {
    const { usedBytes, boundBytes } = sources.poolAccount();
    one.set({ what: "used" }, usedBytes);
    one.set({ what: "bound" }, boundBytes);
  });
  gauge("svc_network_slots", "Addresses in use or resting", [], (one) => one.set(sources.slots()));
  gauge("svc_orphans", "Dead containers not removed yet", [], (one) => one.set(sources.pendingRemovals()));
  counted(
    "svc_sandbox_oom_kills_total",
    "Processes that the kernel killed because their sandbox had used up its memory",
    [],
    (one) => one.inc(sources.memoryKills()),
  );
  counted(
    "svc_placeholder_uses_total",
    "Placeholders of header rules, by whether the request got a value: used, missing, refused, unavailable",
    ["result"],
    (one) => {
      for (const [result, count] of Object.entries(sources.placeholderUses())) one.inc({ result }, count);
    },
  );
  counted(
    "svc_egress_decisions_total",
    "Connections and questions of sandboxes by protocol and verdict; unlogged: too many to have an entry of the log",
    ["proto", "verdict"],
    (one) => {
      for (const [key, count] of sources.egress().decisions) {
        const [proto = "", verdict = ""] = key.split(" ");
        one.inc({ proto, verdict }, count);
      }
    },
  );
  counted("svc_egress_bytes_total", "Bytes of these connections, added at their end", ["dir"], (one) => {
    const { sentBytes, receivedBytes } = sources.egress();
    one.inc({ dir: "sent" }, sentBytes);
    one.inc({ dir: "received" }, receivedBytes);
  });
  gauge(
    "svc_network_passes",
    "1 while the host lets packets of sandboxes through, by the way that they take: forward, resolver, egress",
    ["way"],
    (one) => {
      one.reset();
      for (const [way, passes] of sources.ways()) one.set({ way }, Number(passes));
    },
  );
  gauge(
    "svc_node_finding",
    "1 for each thing that the node cannot do, or that stands in the way of its sandboxes",
    ["id"],
    (one) => {
      one.reset();
      for (const { id } of sources.findings()) one.set({ id }, 1);
    },
  );
  const ofLimits = (name: string, help: string, of: "used" | "max") =>
    gauge(name, help, ["limit"], (one) => {
      for (const [limit, figures] of Object.entries(sources.hostLimits())) one.set({ limit }, figures[of]);
    });
  ofLimits("svc_host_limit_used", "Use of a kernel limit that all programs of the machine share", "used");
  ofLimits("svc_host_limit_max", "The limit", "max");
  const ofVolumes = (name: string, help: string, read: (volume: VolumeUse) => number) =>
    gauge(name, help, [], (one) => one.set(sources.volumes().reduce((sum, volume) => sum + read(volume), 0)));
  ofVolumes("svc_volumes", "Volumes on this node", () => 1);
  ofVolumes("svc_volume_size_bytes", "Sizes of the volumes on this node", ({ sizeMb }) => sizeMb * 1024 ** 2);
  ofVolumes("svc_volume_used_bytes", "Bytes that these take on the disk", ({ usedBytes }) => usedBytes);
  gauge("svc_volume_content_open", "Requests for the content of volumes that have not ended", [], (one) =>
    one.set(sources.volumeRequests()),
  );
  gauge("svc_orchestrator_reached", "1 while the orchestrator answers", [], (one) =>
    one.set(Number(sources.orchestratorReached())),
  );

  const created = new Histogram({
    name: "svc_sandbox_create_duration_seconds",
    help: "Time of a start on this node",
    labelNames: ["path"],
    buckets: SECONDS,
    registers,
  });
  const killed = new Histogram({
    name: "svc_sandbox_stop_duration_seconds",
    help: "Time of a kill on this node",
    buckets: SECONDS,
    registers,
  });
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const failures = counter("svc_sandbox_create_failures_total", "Starts that failed");
  const claims = counter("svc_pool_claims_total", "Starts, by whether the pool had a container", ["result"]);
  const exits = counter("svc_sandbox_exits_total", "Sandboxes that ended by themselves", ["reason"]);
  const repairs = counter(
    "svc_firewall_repairs_total",
    "Times the agent restored its firewall after another program changed it",
  );

  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    started(path, seconds) {
      created.observe({ path }, seconds);
      claims.inc({ result: path === "warm" ? "hit" : "miss" });
    },
    startFailed: () => failures.inc(),
    stopped: (seconds) => killed.observe(seconds),
    exited: (reason) => exits.inc({ reason }),
    firewallRepaired: () => repairs.inc(),
  };
}
