/** `svc snapshot verify`: has every copy of stored snapshots and images of templates read and compared with its digests, and says where a good one is. */

import { setTimeout as sleep } from "node:timers/promises";
import { type Api, createApi, type Item, type Reply } from "../../api/client.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure, usage } from "../../failure.ts";
import type { View } from "../../output/output.ts";
import { bytes } from "../../output/time.ts";

type Stored = Item<"GET /admin/snapshots">;
type Verification = Reply<"GET /admin/snapshots/{snapshotID}/checks/{checkID}">;
export type Verified = Stored & Pick<Verification, "verdict" | "copies" | "good">;

/** Snapshots at a time: each node reads one, and the others wait. */
const AT_ONCE = 4;
const POLL_MS = 1_000;
const CANCEL_MS = 3_000;

const view: View<Verified> = {
  name: ({ snapshotID }) => `snapshot/${snapshotID}`,
  columns: [
    { title: "SNAPSHOT", of: ({ snapshotID }) => snapshotID },
    { title: "KIND", of: ({ kind }) => kind },
    { title: "OF", of: ({ kind, id, templateID }) => (kind === "paused" ? id : templateID) },
    { title: "VERDICT", of: ({ verdict }) => verdict ?? "", state: true },
    { title: "COPIES", of: ({ copies }) => copies.map((copy) => `${placeOf(copy)} ${copy.state}`).join(", ") },
    { title: "GOOD COPY", of: ({ good }) => good.map(goodCopy).join("; ") },
    { title: "READ", of: ({ copies }) => bytes(copies.reduce((sum, { doneBytes }) => sum + doneBytes, 0)), wide: true },
  ],
};

export const verify: Action = async (context, { first: asked }, options) => {
  if ((asked === "") !== (options.all === true))
    throw usage("name one snapshot, or all of them", "svc snapshot verify ID, or svc snapshot verify --all");
  const api = await context.admin();
  const stored = await api.all("GET /admin/snapshots", { query: {} });
  const left = options.all === true ? [...stored] : [await named(asked, stored, context)];
  const verified: Verified[] = [];
  async function worker(): Promise<void> {
    for (let item = left.shift(); item !== undefined; item = left.shift())
      verified.push(await verifyOne(item, api, context));
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const order = new Map(stored.map(({ snapshotID }, index) => [snapshotID, index]));
  verified.sort((one, other) => (order.get(one.snapshotID) ?? 0) - (order.get(other.snapshotID) ?? 0));
  await context.out.list(view, verified, options);
  return verified.every(({ verdict }) => verdict === "whole") ? 0 : EXIT.failed;
};

async function verifyOne(item: Stored, api: Api, context: Context): Promise<Verified> {
  const { snapshotID } = item;
  let state: Verification = await api.call("POST /admin/snapshots/{snapshotID}/checks", { params: { snapshotID } });
  const params = { snapshotID, checkID: state.checkID };
  try {
    for (let told = ""; state.verdict === null; ) {
      const now = state.copies.map((copy) => `${placeOf(copy)} ${howFar(copy)}`).join(", ");
      if (now !== told) context.out.note(`${snapshotID}: ${now}`);
      told = now;
      await sleep(POLL_MS, undefined, { signal: context.signal });
      state = await api.call("GET /admin/snapshots/{snapshotID}/checks/{checkID}", { params });
    }
  } catch (error) {
    if (context.signal.aborted) await cancel(params, context);
    throw error;
  }
  for (const text of faults(state)) context.out.note(`${snapshotID}: ${text}`);
  const { verdict, copies, good } = state;
  return { ...item, verdict, copies, good };
}

/** The user has ended the command. Nodes that are not told end the check within a minute. */
async function cancel(params: { readonly snapshotID: string; readonly checkID: string }, context: Context) {
  const { apiUrl, adminToken = "" } = await context.settings();
  const headers = { "x-admin-token": adminToken };
  const { signal } = new AbortController();
  const api = createApi({ url: apiUrl, headers, timeoutMs: CANCEL_MS, signal });
  await api.call("DELETE /admin/snapshots/{snapshotID}/checks/{checkID}", { params }).catch(() => undefined);
}

/** By its id, that of its paused sandbox or of its template, the newest first, or with the project's key by its name. */
async function named(asked: string, stored: readonly Stored[], context: Context): Promise<Stored> {
  const id = asked.split(":", 1)[0] ?? asked;
  const found = stored.filter(
    ({ snapshotID, id: own, templateID, kind }) =>
      [snapshotID, own].includes(asked) || (kind !== "paused" && templateID === id),
  );
  const [first] = found.length > 0 ? found : await byName(asked, stored, context);
  if (first !== undefined) return first;
  throw new Failure(`there is no snapshot '${asked}'`, {
    exitCode: EXIT.notFound,
    wayOut: "svc snapshot verify --all shows all of them, paused sandboxes and templates",
  });
}

async function byName(name: string, stored: readonly Stored[], { api, settings }: Context): Promise<readonly Stored[]> {
  if ((await settings()).apiKey === undefined) return [];
  const known = await (await api()).all("GET /snapshots", { query: { name } }, 1);
  return stored.filter(({ id }) => known.some(({ buildID }) => buildID === id));
}

type Copy = Verification["copies"][number];

function placeOf({ place, nodeID }: Copy): string {
  return place === "store" ? "store" : `node/${nodeID}`;
}

function howFar({ state, doneBytes, totalBytes }: Copy): string {
  if (state !== "running" || totalBytes === 0) return state;
  return `${Math.min(99, Math.floor((doneBytes * 100) / totalBytes))}% of ${bytes(totalBytes)}`;
}

function goodCopy({ part, places }: Verification["good"][number]): string {
  return `${part}: ${places.length === 0 ? "nowhere" : places.join(", ")}`;
}

/** What is wrong with each copy, a line for each fault. Pure. */
export function faults({ copies }: Pick<Verification, "copies">): readonly string[] {
  return copies.flatMap((copy) => [
    ...(copy.error === null ? [] : [`${placeOf(copy)}: ${copy.error}`]),
    ...copy.parts.flatMap(({ part, state, faulty, faults: texts }) => [
      ...texts.map((text) => `${placeOf(copy)}, ${part} ${state}: ${text}`),
      ...(faulty > texts.length ? [`${placeOf(copy)}, ${part}: ${faulty - texts.length} more`] : []),
    ]),
  ]);
}
