/** What a terminal does before it asks for its shell again: it waits for the sandbox, or learns that there is none any more. */

import { afterEach, expect, test, vi } from "vitest";
import { pageFile } from "../page-files.ts";

interface Waiting {
  readonly still: () => void;
  readonly ended: () => void;
}

const { untilRuns } = await pageFile<{
  readonly untilRuns: (id: string, waiting: Waiting, left: AbortSignal) => Promise<boolean>;
}>("sandbox/until-runs.ts");

afterEach(() => {
  vi.unstubAllGlobals();
});

/** Lets the platform say these states, one after the other. Undefined: it does not answer. */
async function after(...states: readonly (string | undefined)[]): Promise<readonly unknown[]> {
  const left = [...states];
  const said: string[] = [];
  vi.stubGlobal("fetch", (path: string) => {
    expect(path).toBe("/console/api/sandboxes/i1?ended=true");
    const state = left.shift();
    return state === undefined
      ? Promise.reject(new TypeError("nothing answers"))
      : Promise.resolve(Response.json({ state }));
  });
  const waiting = { still: () => void said.push("still"), ended: () => void said.push("ended") };
  return [await untilRuns("i1", waiting, new AbortController().signal), ...said];
}

test("a terminal asks for its shell again only of a sandbox that may run", async () => {
  expect(await after("running")).toEqual([true]);
  expect(await after(undefined)).toEqual([true]);
  expect(await after("paused", "running")).toEqual([true, "still"]);
  expect(await after("ended")).toEqual([false, "ended"]);
  expect(await after("paused", "ended")).toEqual([false, "still", "ended"]);
});

test("a terminal that is left asks nothing more", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new Error("asked")));
  const left = AbortSignal.abort();
  const waiting = { still: () => expect.unreachable(), ended: () => expect.unreachable() };
  expect(await untilRuns("i1", waiting, left)).toBe(false);
});
