/** The sandbox list: filters, order, pages and counts. Each test marks its own sandboxes with metadata. */

import { randomUUID } from "node:crypto";
import { Sandbox, type SandboxInfo, type SandboxListOpts } from "e2b";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { ownSandbox, refusal } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();

describe("three sandboxes with one metadata value", () => {
  const mark = randomUUID();
  const made: Sandbox[] = [];

  beforeAll(async () => {
    for (const place of ["first", "second", "third"]) {
      made.push(await Sandbox.create({ timeoutMs: 1_800_000, metadata: { mark, place, odd: "a=b&c d/é%" } }));
    }
  });
  afterAll(async () => {
    await Promise.all(made.map((sandbox) => sandbox.kill()));
  });

  test("metadata filters are joined with AND and match exactly", async () => {
    expect(await ids({ query: { metadata: { mark } } })).toHaveLength(3);
    expect(await ids({ query: { metadata: { mark, place: "second" } } })).toEqual([made[1]?.sandboxId]);
    expect(await ids({ query: { metadata: { mark, place: "sec" } } })).toEqual([]);
    expect(await ids({ query: { metadata: { mark, nobody: "has" } } })).toEqual([]);
  });

  test("values with separators, blanks and accents survive the three encodings", async () => {
    expect(await ids({ query: { metadata: { mark, odd: "a=b&c d/é%" } } })).toHaveLength(3);
    expect(await ids({ query: { metadata: { mark, odd: "a=b" } } })).toHaveLength(0);
  });

  test("a list begins with the newest sandbox, or with the oldest when asked", async () => {
    const oldestFirst = made.map((sandbox) => sandbox.sandboxId);
    expect(await ids({ query: { metadata: { mark } } })).toEqual(oldestFirst.toReversed());
    expect(await ids({ query: { metadata: { mark } }, order: "asc" })).toEqual(oldestFirst);
  });

  test.each(["asc", "desc"] as const)(
    "pages of one sandbox hold each once, and the last page says that it is the last (%s)",
    async (order) => {
      const pages = Sandbox.list({ query: { metadata: { mark } }, limit: 1, order });
      const seen: string[] = [];
      for (const more of [true, true, false]) {
        const page = await pages.nextItems();
        expect(page).toHaveLength(1);
        seen.push(...page.map((info) => info.sandboxId));
        expect(pages.hasNext).toBe(more);
      }
      expect(seen.toSorted()).toEqual(made.map((sandbox) => sandbox.sandboxId).toSorted());
    },
  );

  test("a page that is exactly full is the last one", async () => {
    const pages = Sandbox.list({ query: { metadata: { mark } }, limit: 3 });
    expect(await pages.nextItems()).toHaveLength(3);
    expect(pages.hasNext).toBe(false);
  });

  test("a page token of the other order is refused", async () => {
    const pages = Sandbox.list({ query: { metadata: { mark } }, limit: 1, order: "asc" });
    await pages.nextItems();
    const token = encodeURIComponent(pages.nextToken ?? "");
    expect((await api(platform, "GET", `/v2/sandboxes?limit=1&order=asc&nextToken=${token}`)).status).toBe(200);
    expect((await api(platform, "GET", `/v2/sandboxes?limit=1&order=desc&nextToken=${token}`)).status).toBe(400);
  });

  test("the filter startedAfter includes the moment itself", async () => {
    const second = (await all({ query: { metadata: { mark, place: "second" } } }))[0];
    const since = await ids({
      query: { metadata: { mark }, startedAfter: second?.startedAt ?? new Date() },
      order: "asc",
    });
    expect(since).toEqual(made.slice(1).map((sandbox) => sandbox.sandboxId));
    expect(await ids({ query: { metadata: { mark }, startedAfter: new Date(Date.now() + 60_000) } })).toEqual([]);
  });

  test("the template filter takes a name or an id; an unknown one is an empty list", async () => {
    const [info] = await all({ query: { metadata: { mark, place: "first" } } });
    expect(await ids({ query: { metadata: { mark }, template: "base" } })).toHaveLength(3);
    expect(await ids({ query: { metadata: { mark }, template: info?.templateId ?? "" } })).toHaveLength(3);
    expect(await ids({ query: { metadata: { mark }, template: "no-such-template" } })).toEqual([]);
  });

  test("the state filter takes one state or both", async () => {
    expect(await ids({ query: { metadata: { mark }, state: ["running"] } })).toHaveLength(3);
    expect(await ids({ query: { metadata: { mark }, state: ["paused"] } })).toHaveLength(0);
    expect(await ids({ query: { metadata: { mark }, state: ["running", "paused"] } })).toHaveLength(3);
  });

  test("the counts of a list are of the whole set, not of the page", async () => {
    const query = new URLSearchParams({ metadata: new URLSearchParams({ mark }).toString(), limit: "1" });
    const reply = await api(platform, "GET", `/v2/sandboxes?${query.toString()}`);
    expect(reply.headers.get("x-total-count")).toBe("3");
    expect(reply.headers.get("x-total-running")).toBe("3");
    expect(reply.headers.get("x-next-token")).toMatch(/.+/);
    const exposed = reply.headers.get("access-control-expose-headers")?.toLowerCase() ?? "";
    for (const name of ["x-total-count", "x-total-running", "x-next-token", "retry-after"])
      expect(exposed).toContain(name);
    const paused = await api(platform, "GET", `/v2/sandboxes?${query.toString()}&state=paused`);
    expect(paused.headers.get("x-total-running")).toBeNull();
    expect(paused.headers.get("x-next-token")).toBeNull();
  });

  test("the first version of the list has the three sandboxes too, without pages", async () => {
    const metadata = encodeURIComponent(new URLSearchParams({ mark }).toString());
    const reply = await api(platform, "GET", `/sandboxes?metadata=${metadata}`);
    expect(reply.status).toBe(200);
    expect((reply.json as unknown[]).length).toBe(3);
    expect(reply.headers.get("x-next-token")).toBeNull();
  });
});

test("a sandbox is listed once create has returned, and no longer once kill has", async () => {
  const mark = randomUUID();
  const sandbox = await ownSandbox({ metadata: { mark } });
  expect(await ids({ query: { metadata: { mark } } })).toEqual([sandbox.sandboxId]);
  await sandbox.kill();
  expect(await ids({ query: { metadata: { mark } } })).toEqual([]);
});

test.each([
  "limit=0",
  "limit=101",
  "limit=-1",
  "limit=x",
  "state=sleeping",
  "order=up",
  "nextToken=%21%21",
  "startedAfter=soon",
])("?%s is refused with 400", async (query) => {
  const reply = await api(platform, "GET", `/v2/sandboxes?${query}`);
  expect(reply.status).toBe(400);
  expect(reply.json).toMatchObject({ code: 400 });
});

test("an SDK caller sees the refusal", async () => {
  const error = await refusal(Sandbox.list({ limit: 1000 }).nextItems());
  expect(error).toHaveProperty("statusCode", 400);
});

async function all(options: SandboxListOpts): Promise<readonly SandboxInfo[]> {
  const pages = Sandbox.list(options);
  const found: SandboxInfo[] = [];
  while (pages.hasNext) found.push(...(await pages.nextItems()));
  return found;
}

async function ids(options: SandboxListOpts): Promise<readonly string[]> {
  return (await all(options)).map((info) => info.sandboxId);
}
