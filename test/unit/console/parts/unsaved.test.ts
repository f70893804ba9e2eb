/** A screen with text that nobody has saved is left only by somebody who means it. */

import { afterEach, expect, test, vi } from "vitest";
import { until } from "../../../support/runner/until.ts";
import { pageFile } from "../page-files.ts";

const { mayLeave, useUnsaved } = await pageFile<{
  readonly mayLeave: () => boolean;
  readonly useUnsaved: (isUnsaved: boolean) => void;
}>("parts/unsaved.ts");
// Its types are those of a browser, which the other tests are not checked with.
const name = { preact: "preact" };
const { h, render } = (await import(name.preact)) as {
  readonly h: (type: unknown, props: object) => unknown;
  readonly render: (node: unknown, place: object) => void;
};

afterEach(() => {
  vi.unstubAllGlobals();
});

test("changed text is asked about until it is saved, also when the tab is closed", async () => {
  const listening = new Set<unknown>();
  const asked: string[] = [];
  let answer = false;
  vi.stubGlobal("addEventListener", (_type: string, listener: unknown) => void listening.add(listener));
  vi.stubGlobal("removeEventListener", (_type: string, listener: unknown) => void listening.delete(listener));
  vi.stubGlobal("confirm", (text: string) => {
    asked.push(text);
    return answer;
  });
  const place = { childNodes: [], firstChild: null, nodeType: 1 };
  vi.stubGlobal("document", {});
  function Editor({ isUnsaved }: { readonly isUnsaved: boolean }) {
    useUnsaved(isUnsaved);
    return null;
  }
  expect([mayLeave(), asked]).toEqual([true, []]);
  render(h(Editor, { isUnsaved: true }), place);
  await until(() => listening.size === 1, { what: "the question of the browser", timeoutMs: 10_000 });
  expect([mayLeave(), asked.length]).toEqual([false, 1]);
  answer = true;
  expect(mayLeave()).toBe(true);
  render(h(Editor, { isUnsaved: false }), place);
  await until(() => listening.size === 0, { what: "its end", timeoutMs: 10_000 });
  expect([mayLeave(), asked.length]).toEqual([true, 2]);
  render(null, place);
});
