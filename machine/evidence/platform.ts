/** What the orchestrator says of its nodes, and of the sandboxes of this machine's node. */

import { join } from "node:path";
import { ask } from "../base/http.ts";
import { textOf } from "../base/instance.ts";
import type { Machine } from "../base/this-machine.ts";
import type { NodeRecords } from "../invariants/invariants.ts";
import type { NodeSeen } from "./evidence.ts";
import { urlOf } from "./programs/programs.ts";

interface Platform {
  readonly nodes: readonly NodeSeen[];
  readonly records: NodeRecords | undefined;
}

interface Sandbox {
  readonly sandboxID: string;
  readonly state: string;
  readonly endAt: string;
}

/** Sandboxes that a page has at most. */
const PAGE = 100;
const MOST = 100_000;

/** @throws where no orchestrator answers on this machine */
export async function askPlatform({ instance }: Machine): Promise<Platform | undefined> {
  if (!instance.programs.includes("orchestrator")) return undefined;
  const token = textOf(join(instance.places.config, "admin-token"))?.split(/\s/, 1)[0] ?? "";
  const call = async (path: string): Promise<unknown> => {
    const url = `${urlOf(instance, "orchestrator")}${path}`;
    const { status, text } = await ask({ url, headers: { "x-admin-token": token }, limitMs: 15_000 });
    if (status !== 200) throw new Error(`${path} answered ${status}`);
    return JSON.parse(text);
  };
  const own = instance.setting("agent", "SVC_NODE_ID") ?? "";
  const nodes = (await call("/nodes")) as readonly Omit<NodeSeen, "own">[];
  const seen = nodes.map(({ id, status, version, clockSkewMs, lastHeardAt, findings }) => ({
    id,
    own: id === own,
    status,
    version,
    clockSkewMs,
    lastHeardAt,
    findings,
  }));
  const node = encodeURIComponent(own);
  const records = seen.some((one) => one.own) ? await recordsOf(node, call).catch(() => undefined) : undefined;
  return { nodes: seen, records };
}

async function recordsOf(node: string, call: (path: string) => Promise<unknown>): Promise<NodeRecords> {
  const all: Sandbox[] = [];
  for (let from = 0; from < MOST; from = all.length) {
    const page = (await call(`/admin/sandboxes?nodeID=${node}&limit=${PAGE}&offset=${from}`)) as readonly Sandbox[];
    all.push(...page);
    if (page.length < PAGE) break;
  }
  const { held } = (await call(`/nodes/${node}/store`)) as { readonly held: readonly { readonly sandboxID: string }[] };
  const idsOf = (wanted: (state: string) => boolean) =>
    all.filter(({ state }) => wanted(state)).map(({ sandboxID }) => sandboxID);
  return {
    running: all.filter(({ state }) => state === "running"),
    paused: idsOf((state) => state === "paused"),
    moving: idsOf((state) => state !== "running" && state !== "paused"),
    held: held.map(({ sandboxID }) => `svc-${sandboxID}`),
    unseen: 0,
  };
}
