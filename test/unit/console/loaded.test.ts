/** What a screen loads, with a document that holds nothing: only the requests and what becomes of their answers. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { Failed } from "../../../console/src/base/failed.ts";
import { until } from "../../support/runner/until.ts";

type Every = number | "when asked" | "not now";
interface Loaded {
  readonly value: string | undefined;
  readonly error: unknown;
  readonly again: () => void;
}
type UseLoaded = (load: (signal: AbortSignal) => Promise<string>, needs: readonly unknown[], every: Every) => Loaded;
interface Preact {
  readonly h: (type: unknown, props: object) => unknown;
  readonly render: (node: unknown, place: object) => void;
}

// Their types are those of a browser, which the other tests are not checked with.
const names = { preact: "preact", loaded: "../../../console/src/base/loaded.ts" };
const { h, render } = (await import(names.preact)) as Preact;
const { useLoaded } = (await import(names.loaded)) as { readonly useLoaded: UseLoaded };

const before = Object.getOwnPropertyDescriptor(globalThis, "document");
beforeAll(() => Object.defineProperty(globalThis, "document", { value: { hidden: false }, configurable: true }));
afterAll(() => {
  if (before === undefined) Reflect.deleteProperty(globalThis, "document");
  else Object.defineProperty(globalThis, "document", before);
});

/** A screen that shows nothing, with requests that end when the test says so. */
function openScreen() {
  const requests: { readonly signal: AbortSignal; answer: (text: string) => void; refuse: (error: unknown) => void }[] =
    [];
  const shown: Loaded[] = [];
  const load = (signal: AbortSignal) =>
    new Promise<string>((answer, refuse) => void requests.push({ signal, answer, refuse }));
  const place = { childNodes: [], firstChild: null, nodeType: 1 };
  function Shown({ every }: { readonly every: Every }) {
    shown.push(useLoaded(load, [], every));
    return null;
  }
  return {
    requests,
    now: () => shown.at(-1),
    draw: (every: Every) => render(h(Shown, { every }), place),
    leave: () => render(null, place),
  };
}

const soon = (check: () => boolean, what: string) => until(check, { what, timeoutMs: 10_000 });
const gone = () => new Failed("template 't' not found", { status: 404, code: "not_found" });

test("a refusal of what the page itself deletes is not shown, and nothing asks for it meanwhile", async () => {
  const screen = openScreen();
  screen.draw(5_000);
  await soon(() => screen.requests.length === 1, "the first request");
  screen.requests[0]?.answer("a template");
  await soon(() => screen.now()?.value === "a template", "its answer");
  screen.now()?.again();
  await soon(() => screen.requests.length === 2, "the second request");
  screen.draw("not now");
  expect(screen.requests[1]?.signal.aborted).toBe(true);
  screen.requests[1]?.refuse(gone());
  screen.now()?.again();
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(screen.requests).toHaveLength(2);
  expect(screen.now()).toMatchObject({ value: "a template", error: undefined });
  screen.leave();
});

test("what could not be deleted is asked for again, and its refusals are shown", async () => {
  const screen = openScreen();
  screen.draw("not now");
  screen.draw(5_000);
  await soon(() => screen.requests.length === 1, "the request");
  screen.requests[0]?.refuse(gone());
  await soon(() => screen.now()?.error !== undefined, "its refusal");
  expect(screen.now()?.error).toMatchObject({ status: 404 });
  screen.leave();
});
