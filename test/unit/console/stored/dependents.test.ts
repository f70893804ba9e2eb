/** What depends on a template, a snapshot or a volume, as the page shows before it is deleted. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { pageFile } from "../page-files.ts";

interface Dependent {
  readonly sandboxID: string;
}
type Load<T> = (of: T, signal: AbortSignal) => Promise<readonly Dependent[]>;

const { startedFromTemplate, startedFromSnapshot, mounting } = await pageFile<{
  readonly startedFromTemplate: Load<string>;
  readonly startedFromSnapshot: Load<{ readonly templateID: string; readonly buildID: string }>;
  readonly mounting: Load<string>;
}>("stored/dependents.ts");

interface Sandbox {
  readonly sandboxID: string;
  readonly templateID: string;
  readonly volumeMounts?: readonly { readonly name: string; readonly path: string }[];
}
let sandboxes: readonly Sandbox[];
/** Of the first event of a sandbox, by its id. */
let builds: Readonly<Record<string, string>>;

beforeEach(() => {
  vi.stubGlobal("fetch", (path: string) => {
    const { pathname } = new URL(path, "http://localhost");
    const [, id] = /\/events\/sandboxes\/(\w+)$/.exec(pathname) ?? [];
    if (id === undefined) return Promise.resolve(Response.json(sandboxes));
    const build = builds[id];
    const first = { type: "sandbox.lifecycle.created", sandboxBuildId: build };
    return Promise.resolve(Response.json(build === undefined ? [] : [first]));
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
});

const { signal } = new AbortController();
const idsOf = async (found: Promise<readonly Dependent[]>) => (await found).map(({ sandboxID }) => sandboxID);

test("the sandboxes of a template are those that run or are paused from it", async () => {
  sandboxes = ["t1", "t2", "t1"].map((templateID, index) => ({ sandboxID: `i${index}`, templateID }));
  expect(await idsOf(startedFromTemplate("t1", signal))).toEqual(["i0", "i2"]);
});

test("the sandboxes of a snapshot are not those of another snapshot of the same sandbox; one without its first event is among them", async () => {
  sandboxes = ["i0", "i1", "i2"].map((sandboxID) => ({ sandboxID, templateID: "t1" }));
  builds = { i0: "b1", i1: "b2" };
  expect(await idsOf(startedFromSnapshot({ templateID: "t1", buildID: "b1" }, signal))).toEqual(["i0", "i2"]);
});

test("none of very many sandboxes of a snapshot is left out", async () => {
  sandboxes = Array.from({ length: 60 }, (_none, index) => ({ sandboxID: `i${index}`, templateID: "t1" }));
  builds = Object.fromEntries(sandboxes.map(({ sandboxID }) => [sandboxID, "b1"]));
  const found = await idsOf(startedFromSnapshot({ templateID: "t1", buildID: "b1" }, signal));
  expect(new Set(found)).toEqual(new Set(sandboxes.map(({ sandboxID }) => sandboxID)));
});

test("the sandboxes of a volume are those that mount it", async () => {
  const mounts = (name: string) => [{ name, path: "/mnt" }];
  sandboxes = [
    { sandboxID: "i0", templateID: "t", volumeMounts: mounts("data") },
    { sandboxID: "i1", templateID: "t", volumeMounts: mounts("other") },
    { sandboxID: "i2", templateID: "t" },
  ];
  expect(await idsOf(mounting("data", signal))).toEqual(["i0"]);
});
