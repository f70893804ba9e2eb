/** Creates, lists and reports at a real orchestrator: first with one node and an empty database, then with many of both. */

import { Agent, request } from "node:http";
import { ADMIN_TOKEN, NODE_KEY } from "../../support/cluster/cluster.ts";
import { type MortalOrchestrator, startMortalOrchestrator } from "../../support/cluster/mortal-orchestrator.ts";
import { type Row, row, summarise } from "../numbers.ts";
import { fillWithRecords } from "./records.ts";
import { type SimulatedNodes, startSimulatedNodes } from "./simulated-nodes.ts";

const CREATES = 400;
const PAGES = 400;
const PAGE = 100;
/** Requests under way at a time when creates are counted by the second. */
const AT_ONCE = 32;
const PAGE_LIMIT_MS = 20;
/** "Flat": what a create may cost with many nodes and records, beside one with few. */
const FLAT = 1.5;

interface Given {
  readonly store: string;
  /** A PostgreSQL server; null: SQLite. */
  readonly server: string | null;
  readonly nodes: number;
  readonly records: number;
  readonly say: (line: string) => void;
}

/** Limits that would answer in the place of the orchestrator. */
const SETTINGS = {
  SVC_RATE_LIMIT_CREATE_PER_SECOND: "100000",
  SVC_RATE_LIMIT_WRITE_PER_SECOND: "100000",
  SVC_RATE_LIMIT_READ_PER_SECOND: "100000",
  SVC_MAX_PROJECT_SANDBOXES: "1000000",
};

export async function orchestrating(given: Given): Promise<Row[]> {
  const { store, server, nodes, records, say } = given;
  const few = await withOrchestrator(server, 1, async (platform) => {
    await creates(platform, 50);
    return summarise(await creates(platform, CREATES));
  });
  say(`${store}: one node, no records: a create takes ${few.p50.toFixed(1)} ms`);
  return withOrchestrator(server, nodes, async (platform) => {
    const like = await examples(platform);
    const { database } = platform.orchestrator;
    const paused = Math.floor(records * 0.15);
    await fillWithRecords({
      database,
      nodes: platform.simulated,
      paused: { like: like.paused, count: paused },
      ended: { like: like.ended, count: records - paused },
    });
    say(`${store}: ${nodes} nodes, ${records} records`);
    platform.simulated.reports();
    await creates(platform, 50);
    const create = summarise(await creates(platform, CREATES));
    const list = summarise(await pages(platform, PAGES));
    const rate = await createsBySecond(platform, 2_000);
    const reports = summarise(platform.simulated.reports());
    const { failed } = platform.simulated;
    const note = `${store}, ${nodes} nodes, ${records} records, ${failed.count} reports failed ${failed.last}`.trim();
    return [
      row({
        name: `create, ${store}`,
        unit: "ms",
        ours: create,
        baseline: { name: "one node, no records", ...few },
        budgets: [
          {
            says: `p50 ≤ ${FLAT} × that of one node`,
            value: create.p50 / few.p50,
            limit: FLAT,
            better: "less",
          },
        ],
        note,
      }),
      row({
        name: `list page of ${PAGE}, ${store}`,
        unit: "ms",
        ours: list,
        budgets: [{ says: `p99 ≤ ${PAGE_LIMIT_MS} ms`, value: list.p99, limit: PAGE_LIMIT_MS, better: "less" }],
      }),
      row({ name: `report of a node, ${store}`, unit: "ms", ours: reports, budgets: [] }),
      row({ name: `creates, ${AT_ONCE} at once, ${store}`, unit: "req/s", ours: summarise([rate]), budgets: [] }),
    ];
  });
}

interface Measured {
  readonly orchestrator: MortalOrchestrator;
  readonly simulated: SimulatedNodes;
  readonly ask: (method: string, path: string, body?: object) => Promise<{ text: string; next: string | undefined }>;
}

async function withOrchestrator<T>(
  server: string | null,
  nodes: number,
  act: (platform: Measured) => Promise<T>,
): Promise<T> {
  const orchestrator = await startMortalOrchestrator(SETTINGS, { server });
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  let own: Readonly<Record<string, string>> = { "x-admin-token": ADMIN_TOKEN };
  const ask: Measured["ask"] = (method, path, body) =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? "" : JSON.stringify(body);
      const headers = { ...own, "content-type": "application/json", "content-length": Buffer.byteLength(text) };
      const asked = request(`${orchestrator.url}${path}`, { agent, method, headers }, (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.once("error", reject);
        response.once("end", () => {
          const answer = Buffer.concat(parts).toString();
          const next = response.headers["x-next-token"];
          if ((response.statusCode ?? 500) < 300) resolve({ text: answer, next: next?.toString() });
          else reject(new Error(`${method} ${path} answered ${response.statusCode}: ${answer}`));
        });
      });
      asked.once("error", reject);
      asked.end(text);
    });
  try {
    const { teamID } = JSON.parse((await ask("POST", "/admin/projects", { name: "scale" })).text) as { teamID: string };
    const made = await ask("POST", `/admin/teams/${teamID}/api-keys`, { name: "scale" });
    own = { "x-api-key": (JSON.parse(made.text) as { key: string }).key };
    const simulated = await startSimulatedNodes(nodes, { urls: [orchestrator.url], nodeKey: NODE_KEY });
    try {
      return await act({ orchestrator, simulated, ask });
    } finally {
      await simulated.stop();
    }
  } finally {
    agent.destroy();
    await orchestrator.stop();
  }
}

async function create({ ask }: Measured): Promise<string> {
  const { text } = await ask("POST", "/v2/sandboxes", { templateID: "base", timeout: 3_600 });
  return (JSON.parse(text) as { sandboxID: string }).sandboxID;
}

/** One sandbox that is paused and one that has ended. */
async function examples(platform: Measured): Promise<{ paused: string; ended: string }> {
  const [paused, ended] = [await create(platform), await create(platform)];
  await platform.ask("POST", `/sandboxes/${paused}/pause`);
  await platform.ask("DELETE", `/sandboxes/${ended}`);
  return { paused, ended };
}

async function creates(platform: Measured, count: number): Promise<number[]> {
  const samples: number[] = [];
  for (let index = 0; index < count; index++) samples.push(await timed(() => create(platform)));
  return samples;
}

/** Walks through the list page by page, and begins again at its end. */
async function pages({ ask }: Measured, count: number): Promise<number[]> {
  const samples: number[] = [];
  let next: string | undefined;
  for (let index = 0; index < count; index++) {
    const at = next === undefined ? "" : `&nextToken=${encodeURIComponent(next)}`;
    samples.push(
      await timed(async () => {
        next = (await ask("GET", `/v2/sandboxes?limit=${PAGE}&state=running,paused${at}`)).next;
      }),
    );
  }
  return samples;
}

async function createsBySecond(platform: Measured, count: number): Promise<number> {
  let left = count;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0) await create(platform);
    }),
  );
  return (count / (performance.now() - began)) * 1_000;
}

async function timed(action: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await action();
  return performance.now() - began;
}
