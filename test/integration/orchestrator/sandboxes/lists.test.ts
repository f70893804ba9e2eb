/** Lists: pages, order, filters, counts. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

interface Listed {
  readonly sandboxID: string;
  readonly startedAt: string;
}

let cluster: Cluster;
const ids: string[] = [];

beforeAll(async () => {
  cluster = await startCluster();
  for (let index = 0; index < 23; index++) {
    const metadata = { number: String(index), parity: index % 2 === 0 ? "even" : "odd", "k y": "v&=1" };
    const answer = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", metadata } });
    ids.push((answer.body as { sandboxID: string }).sandboxID);
  }
  // Some sandboxes are made in one millisecond, so that ties occur.
  const tied = await Promise.all(
    Array.from({ length: 7 }, () => cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })),
  );
  ids.push(...tied.map(({ body }) => (body as { sandboxID: string }).sandboxID));
});
afterAll(() => cluster.stop());

async function pages(query: string): Promise<{ items: Listed[]; tokens: (string | null)[] }> {
  const items: Listed[] = [];
  const tokens: (string | null)[] = [];
  let token: string | null = "";
  do {
    const next = token === "" ? "" : `&nextToken=${encodeURIComponent(token)}`;
    const answer = await cluster.ask("GET", `/v2/sandboxes?${query}${next}`);
    expect(answer.status, answer.text).toBe(200);
    items.push(...(answer.body as Listed[]));
    token = answer.headers.get("x-next-token");
    tokens.push(token);
  } while (token !== null);
  return { items, tokens };
}

test.each([
  [1, "asc"],
  [1, "desc"],
  [7, "asc"],
  [10, "desc"],
  [15, "asc"],
  [29, "desc"],
  [30, "asc"],
  [100, "desc"],
])("pages of %i, %s, hold each sandbox once and in order, and the last page has no token", async (limit, order) => {
  const { items, tokens } = await pages(`limit=${limit}&order=${order}`);
  expect(items.map(({ sandboxID }) => sandboxID).sort()).toEqual([...ids].sort());
  const sorted = items.toSorted(
    (a, b) =>
      (order === "asc" ? 1 : -1) * (Date.parse(a.startedAt) - Date.parse(b.startedAt)) ||
      a.sandboxID.localeCompare(b.sandboxID),
  );
  expect(items).toEqual(sorted);
  expect(tokens).toHaveLength(Math.ceil(ids.length / limit));
});

test("counts cover the whole result, and running sandboxes are counted only on request", async () => {
  const both = await cluster.ask("GET", "/v2/sandboxes?limit=5");
  expect([both.headers.get("x-total-running"), both.headers.get("x-total-count")]).toEqual(["30", "30"]);
  const paused = await cluster.ask("GET", "/v2/sandboxes?state=paused");
  expect(paused.body).toEqual([]);
  expect([paused.headers.get("x-total-running"), paused.headers.get("x-total-count")]).toEqual([null, "0"]);
});

test("a token of one order is refused by the other, and so is a damaged one", async () => {
  const token = (await cluster.ask("GET", "/v2/sandboxes?limit=2&order=asc")).headers.get("x-next-token") ?? "";
  for (const query of [`order=desc&nextToken=${token}`, "nextToken=abc", `order=asc&nextToken=${token.slice(0, -6)}`]) {
    const answer = await cluster.ask("GET", `/v2/sandboxes?${query}`);
    expect(answer.body).toMatchObject({ code: 400, message: "Invalid next token" });
  }
});

describe("filters", () => {
  const count = async (query: string, path = "/v2/sandboxes") =>
    ((await cluster.ask("GET", `${path}?${query}`)).body as Listed[]).length;

  // The published SDK encodes metadata like this: each part, then the pairs, then the query.
  const metadata = (pairs: Record<string, string>) => {
    const encoded = Object.entries(pairs).map(([k, v]): [string, string] => [
      encodeURIComponent(k),
      encodeURIComponent(v),
    ]);
    return `metadata=${encodeURIComponent(new URLSearchParams(encoded).toString())}`;
  };

  test("match metadata only when every pair is equal", async () => {
    expect(await count(metadata({ parity: "even" }))).toBe(12);
    expect(await count(metadata({ parity: "odd", number: "3" }))).toBe(1);
    expect(await count(metadata({ parity: "odd", number: "4" }))).toBe(0);
    expect(await count(metadata({ "k y": "v&=1" }))).toBe(23);
    expect(await count(metadata({ number: "3" }), "/sandboxes")).toBe(1);
  });

  test("match every pair of metadata that is repeated, as Go's url.Values writes them", async () => {
    expect(await count("metadata=parity%3Dodd&metadata=number%3D3")).toBe(1);
    expect(await count("metadata=parity%3Dodd&metadata=number%3D4")).toBe(0);
    expect(await count("metadata=parity%3Dodd&metadata=number%3D3", "/sandboxes")).toBe(1);
    expect((await cluster.ask("GET", "/v2/sandboxes?metadata=number%3D3&metadata=number%3D4")).status).toBe(400);
  });

  test("understand metadata in the encoding that SDKs send", async () => {
    expect(await count("metadata=k%252520y%3Dv%252526%25253D1")).toBe(23);
  });

  test("template by id and by name; `:default` means no tag, another tag is refused, an unknown name is an empty list", async () => {
    const { templateID } = (await cluster.ask("GET", "/templates/aliases/base")).body as { templateID: string };
    expect(await count(`template=${templateID}&limit=50`)).toBe(30);
    expect(await count("template=base&limit=50")).toBe(30);
    expect(await count("template=nosuch")).toBe(0);
    expect(await count("template=base:default&limit=50")).toBe(30);
    expect(await count(`template=${templateID}%3Adefault&limit=50`)).toBe(30);
    expect((await cluster.ask("GET", "/v2/sandboxes?template=base:v1")).body).toMatchObject({
      code: 400,
      message: expect.stringContaining("must not have the tag 'v1'") as string,
    });
  });

  test.each(["No Such Name!", "a/b/c", "ünï", " ", "x".repeat(200), "../base", "a\u0000b"])(
    "template=%j, which no template can be called, is an empty list with its counts",
    async (text) => {
      const answer = await cluster.ask("GET", `/v2/sandboxes?template=${encodeURIComponent(text)}`);
      expect([answer.status, answer.body, answer.headers.get("x-total-count")], answer.text).toEqual([200, [], "0"]);
      expect(answer.headers.get("x-next-token")).toBeNull();
    },
  );

  test("startedAfter includes a sandbox that started at exactly that time", async () => {
    const { items } = await pages("order=asc&limit=100");
    const at = items[10]?.startedAt ?? "";
    const expected = items.filter(({ startedAt }) => Date.parse(startedAt) >= Date.parse(at)).length;
    expect(await count(`startedAfter=${encodeURIComponent(at)}`)).toBe(expected);
  });

  test("startedAfter takes an offset whose + the query has made a space, and a leap second", async () => {
    const { items } = await pages("order=asc&limit=100");
    const at = items[10]?.startedAt ?? "";
    const expected = await count(`startedAfter=${at}`);
    expect(await count(`startedAfter=${at.replace("Z", "+00:00")}`)).toBe(expected);
    expect(await count(`startedAfter=${at.replace("Z", "%2B00:00")}`)).toBe(expected);
    expect(await count("startedAfter=2016-12-31T23:59:60Z")).toBe(30);
  });

  test.each([
    ["startedAfter=2026-01-02T03:04:05", "'startedAfter' must be a time with its offset from UTC, such as 2026-"],
    ["startedAfter=1767225600", "'startedAfter' must be a time with its offset from UTC, such as 2026-"],
  ])("the refusal of %s shows a right one", async (query, message) => {
    const answer = await cluster.ask("GET", `/v2/sandboxes?${query}`);
    expect(answer.body).toMatchObject({ code: 400, message: expect.stringContaining(message) as string });
  });

  test.each([
    "state=stopped",
    "state=",
    "order=up",
    "startedAfter=yesterday",
    "metadata=novalue",
    "metadata=%3Dx",
    "metadata=%25zz",
    "metadata=a%3D1%26a%3D2",
  ])("%s is refused", async (query) => {
    expect((await cluster.ask("GET", `/v2/sandboxes?${query}`)).status).toBe(400);
  });

  test("take states that are joined by commas or repeated", async () => {
    expect(await count("state=running,paused")).toBe(30);
    expect(await count("state=running&state=paused")).toBe(30);
  });
});

test("a killed sandbox in the middle does not disturb the pages around it", async () => {
  const first = await cluster.ask("GET", "/v2/sandboxes?limit=10&order=asc");
  const token = first.headers.get("x-next-token") ?? "";
  const last = (first.body as Listed[]).at(-1)?.sandboxID ?? "";
  await cluster.ask("DELETE", `/sandboxes/${last}`);
  const second = await cluster.ask("GET", `/v2/sandboxes?limit=100&order=asc&nextToken=${token}`);
  expect((second.body as Listed[]).length).toBe(20);
  // Also in the other order, and when the whole page before is gone.
  const newest = await cluster.ask("GET", "/v2/sandboxes?limit=2&order=desc");
  const after = `limit=100&order=desc&nextToken=${newest.headers.get("x-next-token") ?? ""}`;
  const rest = await cluster.ask("GET", `/v2/sandboxes?${after}`);
  for (const { sandboxID } of newest.body as Listed[]) await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
  expect((await cluster.ask("GET", `/v2/sandboxes?${after}`)).body).toEqual(rest.body);
});
