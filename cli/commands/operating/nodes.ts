/** The machines of the platform, for operators. */

import type { Item, Reply } from "../../api/client.ts";
import type { Action } from "../../definition.ts";
import type { View } from "../../output/output.ts";
import { age, bytes } from "../../output/time.ts";
import { showList } from "../../output/watch.ts";

type Node = Item<"GET /nodes">;
type Detail = Reply<"GET /nodes/{nodeID}">;
/** An orchestrator of an earlier version does not tell these. */
type OfThisVersion = Partial<Pick<Detail, "buildCount" | "cachedBuilds" | "lastErrors" | "events">>;
type NodeEvent = NonNullable<Detail["events"]>[number];

/** Events that are shown of a node; all that are kept are in `-o json`. */
const LAST_EVENTS = 10;

const used = (part: number, whole: number) => `${bytes(part)} of ${bytes(whole)}`;
const poolOf = ({ pools }: Pick<Detail, "pools">) =>
  `${pools.reduce((sum, { ready }) => sum + ready, 0)}/${pools.reduce((sum, { wanted }) => sum + wanted, 0)}`;

export const nodeView: View<Node> = {
  name: ({ id }) => `node/${id}`,
  columns: [
    { title: "ID", of: ({ id }) => id },
    { title: "STATUS", of: ({ status }) => status, state: true },
    { title: "SINCE", of: ({ statusChangedAt }) => age(statusChangedAt), moving: true },
    { title: "SANDBOXES", of: ({ sandboxCount, maxSandboxes }) => `${sandboxCount} of ${maxSandboxes}` },
    { title: "CPU", of: ({ metrics }) => `${metrics.cpuPercent.toFixed(0)}% of ${metrics.cpuCount}` },
    { title: "MEMORY", of: ({ metrics }) => used(metrics.memoryUsedBytes, metrics.memoryTotalBytes) },
    { title: "DISK FREE", of: ({ metrics }) => bytes(metrics.diskFreeBytes) },
    { title: "FINDINGS", of: ({ findings }) => String(findings.length) },
    { title: "POOL", of: poolOf, wide: true },
    { title: "VERSION", of: ({ version }) => version, wide: true },
    { title: "REGION", of: ({ region }) => region ?? "", wide: true },
    { title: "API", of: ({ apiURL }) => apiURL, wide: true },
    { title: "PLACEMENT", of: ({ placement }) => placementOf(placement), wide: true },
  ],
};

function placementOf(placement: Node["placement"]): string {
  if (placement === undefined) return "";
  const { fits, reason, score, lacks = [] } = placement;
  if (!fits) return `passed over: ${reason ?? "no reason given"}`;
  const doubts = lacks.length === 0 ? "" : `; may refuse the memory: ${lacks.join(", ")}`;
  return `${score === undefined ? "fits" : `fits, ${score.toFixed(2)}`}${doubts}`;
}

const detailView: View<Detail> = {
  name: ({ id }) => `node/${id}`,
  columns: [
    { title: "ID", of: ({ id }) => id },
    { title: "STATUS", of: ({ status, statusChangedAt }) => `${status}, for ${age(statusChangedAt)}`, state: true },
    { title: "HEARD", of: ({ lastHeardAt }) => `${age(lastHeardAt)} ago` },
    { title: "VERSION", of: ({ version, commit }) => `${version} (${commit.slice(0, 12)})` },
    { title: "API", of: ({ apiURL }) => apiURL },
    { title: "PROXY", of: ({ proxyURL }) => proxyURL },
    { title: "REGION", of: ({ region }) => region ?? "" },
    { title: "CLOCK", of: ({ clockSkewMs }) => skewOf(clockSkewMs) },
    { title: "SANDBOXES", of: ({ sandboxCount, maxSandboxes }) => `${sandboxCount} of ${maxSandboxes}` },
    { title: "POOL", of: poolOf },
    {
      title: "CPU",
      of: ({ metrics, machineInfo }) =>
        `${metrics.cpuPercent.toFixed(0)}% of ${metrics.cpuCount}, ${machineInfo.cpuModelName}`,
    },
    { title: "MEMORY", of: ({ metrics }) => used(metrics.memoryUsedBytes, metrics.memoryTotalBytes) },
    {
      title: "DISK",
      of: ({ metrics: { diskFreeBytes, diskUsedBytes, diskPromisedBytes } }) =>
        `${bytes(diskFreeBytes)} free; sandboxes use ${bytes(diskUsedBytes)} of ${bytes(diskPromisedBytes)}`,
    },
    {
      title: "SNAPSHOTS",
      of: ({ metrics: { snapshotStoredBytes, snapshotQuotaBytes } }) =>
        `${bytes(snapshotStoredBytes)}${snapshotQuotaBytes === 0 ? "" : ` of ${bytes(snapshotQuotaBytes)}`}`,
    },
    {
      title: "CAN",
      of: ({ capabilities: { memorySnapshots, lazyPages, ownDisks, volumes, blobStore, peers } }) =>
        Object.entries({ memorySnapshots, lazyPages, ownDisks, volumes, blobStore, peers })
          .map(([name, can]) => (can ? name : `no ${name}`))
          .join(", "),
    },
    {
      title: "PROGRAMS",
      of: ({ capabilities: { kernel, docker, runc, criu } }) =>
        `kernel ${kernel}, Docker ${docker}, runc ${runc}, CRIU ${criu}`,
    },
    {
      title: "BUILDS",
      of: ({ buildCount, cachedBuilds }: OfThisVersion) =>
        `${buildCount ?? "?"} under way, ${cachedBuilds?.length ?? "?"} images`,
    },
  ],
};

function skewOf(ms: number | null): string {
  return ms === null ? "?" : `${Math.abs(ms)} ms ${ms < 0 ? "behind" : "ahead"}`;
}

export const list: Action = async (context, _args, options) => {
  const admin = await context.admin();
  const query = options.template === undefined ? {} : { explain: options.template };
  const shown = options.template === undefined ? options : { ...options, output: options.output ?? ("wide" as const) };
  await showList(context, shown, nodeView, () => admin.call("GET /nodes", { query }));
};

export const info: Action = async ({ admin, out }, { first: nodeID }, options) => {
  const connection = await admin();
  const node = await connection.call("GET /nodes/{nodeID}", { params: { nodeID }, query: {} });
  await out.one(detailView, node, options);
  if (options.output !== undefined) return;
  for (const { id, problem, evidence, wayOut } of node.findings) {
    await out.line(`Finding ${id}: ${problem}`, `  seen: ${evidence}`, `  way out: ${wayOut}`);
  }
  for (const { at, errorCode, message } of lastErrorsOf(node))
    await out.line(`Start failed ${age(at)} ago (${errorCode}): ${message}`);
  for (const event of eventsOf(node).slice(0, LAST_EVENTS)) await out.line(eventLine(event));
};

function eventLine({ at, kind, detail }: NodeEvent): string {
  return `Event ${age(at)} ago: ${kind.replaceAll("_", " ")}${detail === null ? "" : ` (${detail})`}`;
}

export const token: Action = async ({ admin, out }, _args, { kind = "node" }) => {
  const connection = await admin();
  const { token, expiresAt } = await connection.call("POST /admin/join-tokens", { body: { kind } });
  out.note(
    `for one machine, until ${expiresAt}; there: ./scripts/up ${kind === "edge" ? "--edge-only " : ""}--join TOKEN https://ORCHESTRATOR:PORT`,
  );
  await out.line(token);
};

export const cordon: Action = async ({ admin, out }, { first: nodeID }) => {
  const connection = await admin();
  await connection.call("POST /nodes/{nodeID}", { params: { nodeID }, body: { status: "draining" } });
  await out.line(`node/${nodeID} cordoned`);
};

export const uncordon: Action = async ({ admin, out }, { first: nodeID }) => {
  const connection = await admin();
  await connection.call("POST /nodes/{nodeID}", { params: { nodeID }, body: { status: "ready" } });
  await out.line(`node/${nodeID} takes sandboxes`);
};

export const remove: Action = async ({ admin, out }, { first: nodeID }, { force }) => {
  const connection = await admin();
  const query = force === true ? { force: true } : {};
  const { inStore, ...there } = await connection.call("DELETE /nodes/{nodeID}", { params: { nodeID }, query });
  const kept = countsOf(inStore);
  const counts = Object.entries(there)
    .map(([name, count]) => [name, count - (kept[name] ?? 0)] as const)
    .filter(([, count]) => count > 0);
  await out.line(`node/${nodeID} removed`);
  if (counts.length > 0) out.note(`lost with it: ${counts.map(([name, count]) => `${count} ${name}`).join(", ")}`);
};

function lastErrorsOf({ lastErrors = [] }: OfThisVersion): NonNullable<OfThisVersion["lastErrors"]> {
  return lastErrors;
}

/** None where the database does not answer. */
function eventsOf({ events }: OfThisVersion): readonly NodeEvent[] {
  return events ?? [];
}

/** An orchestrator of an earlier version does not tell them. */
function countsOf(told: Readonly<Record<string, number>> | undefined): Partial<Record<string, number>> {
  return told ?? {};
}
