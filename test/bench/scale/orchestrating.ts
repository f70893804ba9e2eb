/** Creates, lists and reports at a real orchestrator: first with one node and an empty database, then with many of both. */

import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { NODE_KEY } from "../../support/cluster/cluster.ts";
import { type MortalOrchestrator, startMortalOrchestrator } from "../../support/cluster/mortal-orchestrator.ts";
import { type Row, row, summarise } from "../numbers.ts";
import { type Ask, asking, create, createsBySecond, newProject } from "./asking.ts";
import { fillWithRecords } from "./records.ts";
import { UNLIMITED } from "./settings.ts";
import { type SimulatedNodes, startSimulatedNodes } from "./simulated-nodes.ts";

const CREATES = 400;
const PAGES = 400;
/** Each counts the whole list. */
const FIRST_PAGES = 100;
const PAGE = 100;
/** Requests under way at a time when creates are counted by the second. */
const AT_ONCE = 32;
const PAGE_LIMIT_MS = 20;
/** Each node has reported once with its snapshots by then, which are compared only now and then. */
const SETTLE_MS = 6_000;
const WATCH_MS = 10_000;
/** The unit of processor times of processes. */
const TICK_MS = 10;
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
    const processor = await processorOfReports(platform);
    platform.simulated.reports();
    await creates(platform, 50);
    const created = summarise(await creates(platform, CREATES));
    const first = summarise(await firstPages(platform, FIRST_PAGES));
    const list = summarise(await pages(platform, PAGES));
    const callers = Array.from({ length: AT_ONCE }, () => platform.ask);
    const rate = await createsBySecond(callers, 2_000);
    const reports = summarise(platform.simulated.reports());
    const { failed } = platform.simulated;
    const note = `${store}, ${nodes} nodes, ${records} records, ${failed.count} reports failed ${failed.last}`.trim();
    return [
      row({
        name: `create, ${store}`,
        unit: "ms",
        ours: created,
        baseline: { name: "one node, no records", ...few },
        budgets: [
          {
            says: `p50 ≤ ${FLAT} × that of one node`,
            value: created.p50 / few.p50,
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
      row({
        name: `first list page of ${PAGE}, ${store}`,
        unit: "ms",
        ours: first,
        budgets: [{ says: `p99 ≤ ${PAGE_LIMIT_MS} ms`, value: first.p99, limit: PAGE_LIMIT_MS, better: "less" }],
      }),
      row({ name: `report of a node, ${store}`, unit: "ms", ours: reports, budgets: [] }),
      row({ name: `processor for a report, ${store}`, unit: "ms", ours: summarise([processor]), budgets: [] }),
      row({ name: `creates, ${AT_ONCE} at once, ${store}`, unit: "req/s", ours: summarise([rate]), budgets: [] }),
    ];
  });
}

interface Measured {
  readonly orchestrator: MortalOrchestrator;
  readonly simulated: SimulatedNodes;
  readonly ask: Ask;
}

async function withOrchestrator<T>(
  server: string | null,
  nodes: number,
  act: (platform: Measured) => Promise<T>,
): Promise<T> {
  const orchestrator = await startMortalOrchestrator(UNLIMITED, { server });
  const asks = asking(AT_ONCE);
  try {
    const ask = asks.at(orchestrator.url, await newProject(asks, orchestrator.url));
    const simulated = await startSimulatedNodes(nodes, { urls: [orchestrator.url], nodeKey: NODE_KEY });
    try {
      return await act({ orchestrator, simulated, ask });
    } finally {
      await simulated.stop();
    }
  } finally {
    asks.stop();
    await orchestrator.stop();
  }
}

/** One sandbox that is paused and one that has ended. */
async function examples(platform: Measured): Promise<{ paused: string; ended: string }> {
  const [paused, ended] = [await create(platform.ask), await create(platform.ask)];
  await platform.ask("POST", `/sandboxes/${paused}/pause`);
  await platform.ask("DELETE", `/sandboxes/${ended}`);
  return { paused, ended };
}

async function creates({ ask }: Measured, count: number): Promise<number[]> {
  const samples: number[] = [];
  for (let index = 0; index < count; index++) samples.push(await timed(() => create(ask)));
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

async function firstPages({ ask }: Measured, count: number): Promise<number[]> {
  const samples: number[] = [];
  for (let index = 0; index < count; index++)
    samples.push(await timed(() => ask("GET", `/v2/sandboxes?limit=${PAGE}&state=running,paused`)));
  return samples;
}

/** What the orchestrator's process spends on a report, while it does nothing else. */
async function processorOfReports({ orchestrator, simulated }: Measured): Promise<number> {
  await delay(SETTLE_MS);
  simulated.reports();
  const before = await processorMs(orchestrator.pid);
  await delay(WATCH_MS);
  const spent = (await processorMs(orchestrator.pid)) - before;
  return spent / simulated.reports().length;
}

/** Processor time of a process, in steps of 10 ms. */
async function processorMs(pid: number | undefined): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // The name, in parentheses, may have spaces.
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13);
  return (Number(user) + Number(system)) * TICK_MS;
}

async function timed(action: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await action();
  return performance.now() - began;
}
