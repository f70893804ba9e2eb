/** Constructs the reports to the orchestrator: what they describe, and what their answers change here. */

import { nodeApi } from "../../shared/agent-api/routes.ts";
import { defined } from "../../shared/defined.ts";
import type { Finding } from "../../shared/program/finding.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { Blobs } from "../blobs/host-blobs.ts";
import type { AgentConfig } from "../config.ts";
import type { CapabilityWatch } from "../host/capability-watch.ts";
import type { Machine } from "../host/machine.ts";
import { connectToAny, type Orchestrators } from "../joining/orchestrators.ts";
import { authorization, type Peering } from "../joining/peering.ts";
import type { Lease } from "../lease/lease.ts";
import type { Reach } from "../network/reach/reach.ts";
import type { DiskAccount } from "../node-disk/account.ts";
import type { DiskReserve } from "../node-disk/reserve.ts";
import type { LiveSet } from "../sandboxes/live-set.ts";
import type { Pool } from "../sandboxes/pool/pool.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { UsageSampling } from "../sandboxes/usage.ts";
import type { Serving } from "../serving/serving.ts";
import type { HeldImages } from "../snapshots/beyond/held-images.ts";
import type { Uploads } from "../snapshots/beyond/uploads.ts";
import type { Holding } from "../snapshots/store/holding.ts";
import type { Snapshots } from "../snapshots/store/snapshots.ts";
import type { Admission } from "../snapshots/take/admission.ts";
import type { SnapshotTaker } from "../snapshots/take/snapshot-taker.ts";
import type { Stores } from "../store/stores.ts";
import { applyReply } from "./apply-reply.ts";
import { describeNode, type NodeIdentity } from "./heartbeat.ts";
import { type Contact, createReport, type Report } from "./report.ts";

export interface NodeReportDeps {
  readonly config: AgentConfig;
  readonly peering: Peering;
  readonly orchestrators: Orchestrators;
  readonly contact: Contact;
  readonly identity: NodeIdentity;
  readonly capabilities: Pick<CapabilityWatch, "now">;
  readonly reach: Pick<Reach, "refuses">;
  readonly findings: () => Finding[];
  readonly hasBlobStore: boolean;
  readonly host: Machine;
  readonly live: Pick<LiveSet, "running" | "leaving" | "starting">;
  readonly sandboxes: Sandboxes;
  readonly pool: Pool;
  readonly snapshots: Snapshots;
  readonly uploads: Pick<Uploads, "of" | "again">;
  readonly imageUploads: Pick<Uploads, "again">;
  readonly heldImages: Pick<HeldImages, "list">;
  readonly holding: Holding;
  readonly taker: Pick<SnapshotTaker, "pause">;
  readonly blobs: Pick<Blobs, "everyNodeReadsZstd">;
  readonly serving: Serving;
  readonly lease: Pick<Lease, "answered">;
  readonly admission: Pick<Admission, "used">;
  readonly disk: Pick<DiskReserve, "isHeld">;
  readonly diskAccount: Pick<DiskAccount, "load">;
  readonly usage: Pick<UsageSampling, "use">;
  readonly stores: Pick<Stores, "builds" | "executions">;
  readonly now: () => number;
  readonly log: Log;
}

/** Snapshots of templates belong to their builds; the orchestrator has a record of every other one. */
export function reportedSnapshots({ snapshots, stores }: Pick<NodeReportDeps, "snapshots" | "stores">) {
  return snapshots.list().filter(({ executionId }) => stores.builds.get(executionId) === undefined);
}

export function createNodeReport(deps: NodeReportDeps, teardown: Teardown): Report {
  const { config, identity, host, live, pool, snapshots, admission, disk, diskAccount, usage, stores } = deps;
  const { serving, lease, peering, uploads } = deps;
  const orchestrator = connectToAny(nodeApi, {
    orchestrators: deps.orchestrators,
    name: "orchestrator",
    headers: () => authorization(peering),
    meeting: peering.meeting,
  });
  teardown.add("orchestrator connection", () => orchestrator.close());
  const report = createReport({
    nodeId: config.nodeId,
    everyMs: config.heartbeatEveryMs,
    contact: deps.contact,
    orchestratorUrl: config.orchestratorUrl,
    orchestrator: orchestrator.call,
    describe: () =>
      describeNode(config, identity, {
        capabilities: deps.capabilities.now(),
        machine: host.load(),
        pools: pool.load(),
        running: [...live.running(), ...live.leaving()],
        snapshots: reportedSnapshots({ snapshots, stores }).map((each) => ({
          ...each,
          ...defined({ stored: uploads.of(each.snapshotId) }),
        })),
        images: deps.heldImages.list(),
        starting: live.starting(),
        at: deps.now(),
        stored: admission.used(),
        sandboxDisk: diskAccount.load(),
        findings: deps.findings(),
        hasBlobStore: deps.hasBlobStore,
        meetsPeers: peering.member !== undefined,
        networkRefused: deps.reach.refuses(),
        isHeld: (executionId) => disk.isHeld(executionId),
        use: (executionId) => usage.use(executionId),
        store: serving.served,
      }),
    exits: () => stores.executions.exits(),
    acknowledge: (ids) => stores.executions.acknowledge(ids),
    refused: () => serving.refusal !== undefined,
    apply: (reply, sent) => {
      if (!serving.heard(reply.store)) return false;
      applyReply(reply, deps);
      lease
        .answered(sent, reply)
        .catch((error: unknown) => deps.log.error({ err: error }, "could not apply the node's lease"));
      return true;
    },
    now: deps.now,
    sinceBoot: () => host.sinceBoot(),
    log: deps.log,
  });
  teardown.add("report", () => report.stop());
  return report;
}
