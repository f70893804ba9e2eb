/** `GET /events`: filters, pages, and the live stream, which skips no event and bounds its readers. */

import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createEventStreams } from "../../../../orchestrator/events/streams.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import type { PlatformEvent } from "../../../../shared/api/events.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { sandboxRecord } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

const { create, post } = sandboxesOn(() => cluster);
const log = createLog({ component: "test", level: "silent" });

async function read(query: string): Promise<PlatformEvent[]> {
  const answer = await cluster.ask("GET", `/events?${query}`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body as PlatformEvent[];
}

interface Frame {
  readonly id: string;
  readonly event: string;
  readonly data: PlatformEvent;
}

interface Listening {
  readonly status: number;
  readonly frames: Frame[];
  readonly ended: () => boolean;
  close(): void;
}

/** Reads a stream until the test ends. */
async function listen(query = "", headers: Readonly<Record<string, string>> = {}): Promise<Listening> {
  const frames: Frame[] = [];
  let ended = false;
  return new Promise((resolve, reject) => {
    const sent = request(
      `${cluster.url}/events?${query}`,
      { headers: { "x-api-key": cluster.key, accept: "text/event-stream", ...headers } },
      (response) => {
        let rest = "";
        response.setEncoding("utf8").on("data", (text: string) => {
          const parts = (rest + text).split("\n\n");
          rest = parts.pop() ?? "";
          for (const part of parts) {
            const fields = Object.fromEntries(
              part.split("\n").map((line) => [line.split(": ", 1)[0], line.slice(line.indexOf(": ") + 2)]),
            );
            if (fields["data"] === undefined) continue;
            frames.push({
              id: fields["id"] ?? "",
              event: fields["event"] ?? "",
              data: JSON.parse(fields["data"]) as PlatformEvent,
            });
          }
        });
        response.on("error", () => undefined).on("close", () => (ended = true));
        resolve({ status: response.statusCode ?? 0, frames, ended: () => ended, close: () => void sent.destroy() });
      },
    );
    sent.on("error", reject).end();
    onTestFinished(() => void sent.destroy());
  });
}

describe("the list", () => {
  test("has filters of type, sandbox, template and time, both orders, and pages", async () => {
    const one = await create();
    const two = await create();
    await post(one.sandboxID, "timeout", { timeout: 100 });
    const own = await read(`sandboxID=${one.sandboxID}&order=asc`);
    expect(own.map(({ type, sandboxId }) => [type, sandboxId])).toEqual([
      ["sandbox.lifecycle.created", one.sandboxID],
      ["sandbox.lifecycle.updated", one.sandboxID],
    ]);
    const types = "type=sandbox.lifecycle.created,sandbox.lifecycle.killed";
    expect((await read(`${types}&limit=2`)).map(({ sandboxId }) => sandboxId)).toEqual([two.sandboxID, one.sandboxID]);
    expect((await read(`template=${one.templateID}`)).length).toBeGreaterThanOrEqual(3);
    expect(await read("template=other")).toEqual([]);
    const second = Math.floor(Date.now() / 1000);
    expect(await read(`to=${second - 3600}`)).toEqual([]);
    expect((await read(`from=${second - 3600}&to=${second}`)).length).toBeGreaterThanOrEqual(3);

    for (const order of ["asc", "desc"]) {
      const whole = await read(`order=${order}`);
      const first = await cluster.ask("GET", `/events?order=${order}&limit=2`);
      const token = first.headers.get("x-next-token") ?? "";
      const rest = await read(`order=${order}&nextToken=${token}`);
      expect([...(first.body as PlatformEvent[]), ...rest]).toEqual(whole);
    }
    expect((await cluster.ask("GET", "/events")).headers.get("x-next-token")).toBeNull();
  });

  test("names a filter that it does not know", async () => {
    for (const [query, words] of [
      ["type=created", "query field 'type'"],
      ["type=sandbox.lifecycle.killed,created", ', and has "created"'],
      ["nextToken=%21", "Invalid next token"],
      ["sandboxID=A_b", "Invalid sandbox ID"],
    ]) {
      const answer = await cluster.ask("GET", `/events?${query}`);
      expect([answer.status, (answer.body as { message: string }).message]).toEqual([
        400,
        expect.stringContaining(words ?? ""),
      ]);
    }
  });

  test("has no event of another project", async () => {
    await create();
    const { key } = await cluster.addProject("Another");
    expect((await cluster.ask("GET", "/events", { key })).body).toEqual([]);
  });
});

describe("the stream", () => {
  test("shows events as they happen, of its filter alone", async () => {
    const all = await listen();
    const killed = await listen("type=sandbox.lifecycle.killed");
    const { sandboxID: id } = await create({ metadata: { a: "b" } });
    await cluster.ask("DELETE", `/sandboxes/${id}`);
    await expect
      .poll(() => all.frames.map(({ event }) => event))
      .toEqual(["sandbox.lifecycle.created", "sandbox.lifecycle.killed"]);
    await expect.poll(() => killed.frames.map(({ event }) => event)).toEqual(["sandbox.lifecycle.killed"]);
    expect(all.frames.map(({ data }) => data)).toEqual(await read(`sandboxID=${id}&order=asc`));
  });

  test("continues behind Last-Event-ID without a gap, over more events than it reads at once", async () => {
    const before = await listen();
    const { sandboxID: id } = await create();
    await expect.poll(() => before.frames.length).toBe(1);
    before.close();
    await Promise.all(Array.from({ length: 101 }, () => post(id, "timeout", { timeout: 100 })));
    const resumed = await listen("", { "last-event-id": before.frames[0]?.id ?? "" });
    await post(id, "timeout", { timeout: 200 });
    await expect.poll(() => resumed.frames.length).toBe(102);
    const places = resumed.frames.map((frame) => Number(frame.id));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(new Set(resumed.frames.map(({ data }) => data.id)).size).toBe(102);
  });

  test("begins now for a client that says that it has seen no event", async () => {
    await create();
    const open = await listen("", { "last-event-id": "" });
    const { sandboxID: id } = await create();
    await expect.poll(() => open.frames.map(({ data }) => data.sandboxId)).toEqual([id]);
  });

  test("refuses a place that is none, and one that is older than the events that are kept", async () => {
    expect((await listen("", { "last-event-id": "x" })).status).toBe(400);
    expect((await listen("", { "last-event-id": "1000" })).status).toBe(400);
  });

  test("ends when the platform stops, which waits for none", async () => {
    const open = await listen();
    await cluster.restart();
    await expect.poll(open.ended).toBe(true);
  });
});

describe("readers", () => {
  async function streams(limits: Parameters<typeof createEventStreams>[0]["limits"]) {
    const opened = await openTestDatabase();
    const store = createStore(opened.database, Date.now, testSeal);
    const made = createEventStreams({ store, log, ...(limits === undefined ? {} : { limits }) });
    const off = store.events.onAdded((projectId) => made.added(projectId));
    onTestFinished(async () => {
      off();
      made.stop();
      await opened.close();
    });
    const event = (text: string) =>
      store.addEvent(sandboxRecord({ projectId: "p" }), { type: "updated", data: { text } });
    const open = (...given: Parameters<typeof made.open>) => made.open(...given);
    return { open, event };
  }

  test("are bounded for each project and in all, and a place is free when one leaves", async () => {
    const { open } = await streams({ perProject: 2, total: 3 });
    const [first] = [await open("p", {}, undefined), await open("p", {}, undefined)];
    await expect(open("p", {}, undefined)).rejects.toThrow(/the project has 2 streams/);
    await open("q", {}, undefined);
    await expect(open("r", {}, undefined)).rejects.toThrow(/there are 3 streams/);
    first?.destroy();
    await expect
      .poll(() =>
        open("p", {}, undefined).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
  });

  test("that do not read are cut, and the platform holds no more for them than one of their events", async () => {
    const { open, event } = await streams({ slowMs: 20 });
    const stream = await open("p", {}, undefined);
    for (let i = 0; i < 5; i++) await event("x".repeat(60_000));
    stream.read(0);
    await expect.poll(() => stream.destroyed).toBe(true);
    expect(stream.readableLength).toBeLessThan(200_000);
  });

  test("of a quiet stream get a comment from time to time", async () => {
    const { open } = await streams({ heartbeatMs: 10 });
    const stream = await open("p", {}, undefined);
    let text = "";
    stream.setEncoding("utf8").on("data", (part: string) => (text += part));
    await expect.poll(() => text).toMatch(/^retry: 2000\n: events\n\n(: heartbeat\n\n){2}/);
    stream.destroy();
  });
});

test("the order of events follows the order of their transactions, also when the clock is set back", async () => {
  const clock = { at: 1_000_000 };
  const opened = await openTestDatabase();
  onTestFinished(() => opened.close());
  for (const at of [1_000_000, 999_000, 999_000, 1_000_001]) {
    clock.at = at;
    // A new process each time: the order is in the database.
    const store = createStore(opened.database, () => clock.at, testSeal);
    await store.addEvent(sandboxRecord({ projectId: "p" }), { type: "updated", data: { at } });
  }
  const store = createStore(opened.database, () => clock.at, testSeal);
  const rows = await store.events.read("p", {}, { limit: 10, ascending: true });
  expect(rows.map(({ sequence }) => sequence)).toEqual([1_000_000_000, 1_000_000_001, 1_000_000_002, 1_000_001_000]);
});

test("a request for the head of a stream opens none that nobody would end", async () => {
  const headers = { accept: "text/event-stream" };
  // More than the streams that a project may have.
  for (let count = 0; count < 40; count++) expect((await cluster.ask("HEAD", "/events", { headers })).status).toBe(200);
  expect((await listen()).status).toBe(200);
});
