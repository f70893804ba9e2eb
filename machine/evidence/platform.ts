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

/** The rest of a platform that has more would take the doctor's time. */
const MOST_PAGES = 1_000;

/** An answer, and the token of the page behind it. */
interface Page {
  readonly body: unknown;
  readonly next: string | undefined;
}

/** @throws where no orchestrator answers on this machine */
export async function askPlatform({ instance }: Machine): Promise<Platform | undefined> {
  if (!instance.programs.includes("orchestrator")) return undefined;
  const token = textOf(join(instance.places.config, "admin-token"))?.split(/\s/, 1)[0] ?? "";
  const call = async (path: string): Promise<Page> => {
    const url = `${urlOf(instance, "orchestrator")}${path}`;
    const { status, headers, text } = await ask({ url, headers: { "x-admin-token": token }, limitMs: 15_000 });
    if (status !== 200) throw new Error(`${path} answered ${status}`);
    return { body: JSON.parse(text) as unknown, next: [headers["x-next-token"]].flat()[0] };
  };
  const own = instance.setting("agent", "SVC_NODE_ID") ?? "";
  const nodes = (await call("/nodes")).body as readonly Omit<NodeSeen, "own">[];
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

async function recordsOf(node: string, call: (path: string) => Promise<Page>): Promise<NodeRecords> {
  const all: Sandbox[] = [];
  let token = "";
  for (let page = 0; page < MOST_PAGES; page++) {
    const { body, next } = await call(`/admin/sandboxes?nodeID=${node}${token}`);
    all.push(...(body as readonly Sandbox[]));
    if (next === undefined) break;
    token = `&nextToken=${encodeURIComponent(next)}`;
  }
  const store = (await call(`/nodes/${node}/store`)).body;
  const { held } = store as { readonly held: readonly { readonly sandboxID: string }[] };
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
