/** Who collects the garbage of the blob store, and when. */

import { expect, onTestFinished, test } from "vitest";
import type { Nodes } from "../../../../orchestrator/nodes/nodes.ts";
import { createBlobGarbage } from "../../../../orchestrator/repairs/blobs/blob-garbage.ts";
import { BLOB_PERIOD_MS } from "../../../../shared/agent-api/blobs/blob-refs.ts";
import { BLOB_ENCODINGS } from "../../../../shared/agent-api/blobs/encodings.ts";
import type { CollectBlobs } from "../../../../shared/agent-api/routes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { openWorld } from "../store/storage-world.ts";

const log = createLog({ component: "test", level: "silent" });
const DAY = 86_400_000;
const BEGIN = 20_000 * DAY;

interface Reported {
  readonly status?: string;
  readonly blobStore?: boolean;
  readonly sandboxCount?: number;
  /** False: of a version that reads deflate alone. */
  readonly zstd?: boolean;
}

/** Nodes by what they report; each collection goes to `asked`. */
function nodesOf(reports: Readonly<Record<string, Reported>>) {
  const asked: { readonly id: string; readonly body: CollectBlobs }[] = [];
  const state = { failing: false };
  const nodes = {
    list: () =>
      Object.entries(reports).map(([id, { status = "ready", blobStore = true, sandboxCount = 0, zstd = true }]) => ({
        id,
        status,
        facts: { capabilities: { blobStore, detail: zstd ? { blobEncodings: BLOB_ENCODINGS } : {} } },
        load: { sandboxCount },
      })),
    agent: (id: string) => ({
      collectBlobs({ body }: { readonly body: CollectBlobs }) {
        if (state.failing) return Promise.reject(new AppError("node_unreachable", "no answer"));
        asked.push({ id, body });
        return Promise.resolve();
      },
    }),
  } as unknown as Pick<Nodes, "list" | "agent">;
  return { nodes, asked, state };
}

async function world(reports: Parameters<typeof nodesOf>[0]) {
  const clock = { now: BEGIN };
  const now = () => clock.now;
  const opened = await openWorld(now);
  onTestFinished(() => opened.opened.close());
  const { nodes, asked, state } = nodesOf(reports);
  const orchestrator = () => createBlobGarbage({ refs: opened.store.blobRefs, nodes, now, log });
  return { ...opened, clock, asked, state, orchestrator };
}

test("once a day the node with the fewest sandboxes gets all references, and drops what no record names", async () => {
  const { clock, asked, orchestrator, store, run, pause, project } = await world({
    busy: { sandboxCount: 9 },
    idle: { sandboxCount: 1 },
    draining: { status: "draining" },
    without: { blobStore: false },
  });
  await run("i1");
  await run("i2");
  const [kept, dropped] = [await pause("i1", undefined), await pause("i2", undefined)];
  const ref = (digit: string) => `${digit.repeat(64)}.${Math.floor(BEGIN / BLOB_PERIOD_MS)}`;
  await store.blobRefs.record([
    { id: kept, ref: ref("a"), bytes: 1 },
    { id: dropped, ref: ref("b"), bytes: 1 },
  ]);
  await store.move({ id: "i2", to: "killing" });
  const [one, two] = [orchestrator(), orchestrator()];
  await one();
  expect(asked).toEqual([]);
  clock.now += 600_000;
  await Promise.all([one(), two()]);
  expect(asked).toEqual([{ id: "idle", body: { at: clock.now, live: [{ ref: ref("a"), projectId: project.id }] } }]);
  clock.now += DAY / 2;
  await Promise.all([one(), two()]);
  expect(asked).toHaveLength(1);
  clock.now += DAY / 2;
  await Promise.all([one(), two()]);
  expect(asked).toHaveLength(2);
});

test("a node of an earlier version, which does not read every manifest, collects only where there is no other", async () => {
  for (const [other, collector] of [
    [{}, "newer"],
    [{ status: "draining" }, "older"],
  ] as const) {
    const { clock, asked, orchestrator } = await world({
      older: { zstd: false },
      newer: { sandboxCount: 9, ...other },
    });
    const one = orchestrator();
    clock.now += 600_000;
    await one();
    expect(asked.map(({ id }) => id)).toEqual([collector]);
  }
});

test("a node that does not begin leaves the day to the next try", async () => {
  const { clock, asked, state, orchestrator } = await world({ n1: {} });
  const one = orchestrator();
  clock.now += 600_000;
  state.failing = true;
  await one();
  state.failing = false;
  await one();
  expect(asked).toEqual([]);
  clock.now += 600_000;
  await one();
  expect(asked).toHaveLength(1);
});

test("without a node that has the blob store nothing is collected, and the day is not used up", async () => {
  const { clock, orchestrator, store } = await world({ n1: { blobStore: false } });
  const one = orchestrator();
  clock.now += 600_000;
  await one();
  expect(await store.blobRefs.claimDay(Math.floor(clock.now / DAY))).toBe(true);
});
