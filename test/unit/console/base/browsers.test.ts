/** The page in browsers that lack something, or refuse it. */

import { afterEach, expect, test, vi } from "vitest";
import { isCtrlK, isOfInputMethod } from "../../../../console/src/parts/keys.ts";
import { loadPart } from "../../../../console/src/parts/load-part.ts";
import { pageFile } from "../page-files.ts";

const { keep, kept } = await pageFile<{
  readonly keep: (where: string, name: string, value: string) => void;
  readonly kept: (where: string, name: string) => string | undefined;
}>("base/kept.ts");
const { anyOf } = await pageFile<{ readonly anyOf: (signals: readonly AbortSignal[]) => AbortSignal }>(
  "base/stream.ts",
);

afterEach(() => {
  vi.unstubAllGlobals();
});

test("where the browser refuses its storage, what is kept lasts as long as the page", async () => {
  const refusal = () => {
    throw new DOMException("The operation is insecure.", "SecurityError");
  };
  for (const where of ["localStorage", "sessionStorage"]) {
    vi.stubGlobal(where, undefined);
    Object.defineProperty(globalThis, where, { configurable: true, get: refusal });
  }
  expect(kept("sessionStorage", "shell a")).toBeUndefined();
  keep("sessionStorage", "shell a", "console-1");
  expect([kept("sessionStorage", "shell a"), kept("localStorage", "shell a")]).toEqual(["console-1", undefined]);
  vi.stubGlobal("matchMedia", () => ({ matches: false }));
  vi.stubGlobal("document", { documentElement: { dataset: {} } });
  const { theme } = await pageFile<{ readonly theme: { readonly value: string } }>("base/theme.ts");
  expect(theme.value).toBe("dark");
});

test("where the browser refuses the channel between its tabs, the page opens all the same", async () => {
  const { followOtherTabs } = await pageFile<{ readonly followOtherTabs: () => void }>("login/other-tabs.ts");
  vi.stubGlobal("BroadcastChannel", function refused() {
    throw new DOMException("The operation is insecure.", "SecurityError");
  });
  expect(followOtherTabs).not.toThrow();
});

test("storage that is full keeps nothing, and stops nothing", () => {
  const full = () => {
    throw new DOMException("exceeded the quota", "QuotaExceededError");
  };
  vi.stubGlobal("localStorage", { getItem: () => null, setItem: full });
  keep("localStorage", "theme", "light");
  expect(kept("localStorage", "theme")).toBe("light");
});

test("one of several signals aborts where browsers have no AbortSignal.any", () => {
  vi.stubGlobal("AbortSignal", {});
  const [first, second] = [new AbortController(), new AbortController()];
  const both = anyOf([first.signal, second.signal]);
  expect(both.aborted).toBe(false);
  second.abort("left");
  first.abort("late");
  expect([both.aborted, both.reason]).toEqual([true, "left"]);
  expect(anyOf([new AbortController().signal, second.signal]).reason).toBe("left");
});

test("a part that an upgrade took away says to load the page again, and keeps what the browser said", async () => {
  const gone = new TypeError("Failed to fetch dynamically imported module: /console/assets/xterm-old.js");
  const loading = loadPart(() => Promise.reject(gone));
  await expect(loading).rejects.toThrow(/upgraded since the page was opened.*load the page again/);
  await expect(loading).rejects.toHaveProperty("cause", gone);
  expect(await loadPart(() => Promise.resolve("part"))).toBe("part");
});

test.each([
  ["Enter", { key: "Enter" }, false],
  ["Enter that ends a word of an input method", { key: "Enter", isComposing: true }, true],
  ["the same in Safari", { key: "Enter", keyCode: 229 }, true],
])("%s is taken by the page or by the input method", (_name, event, expected) => {
  expect(isOfInputMethod(event)).toBe(expected);
});

test.each([
  ["Ctrl K", { key: "k", code: "KeyK", ctrlKey: true }, true],
  ["⌘ K with Caps Lock", { key: "K", code: "KeyK", metaKey: true }, true],
  ["Ctrl K of a Cyrillic layout", { key: "л", code: "KeyK", ctrlKey: true }, true],
  ["Ctrl K of a Greek layout", { key: "κ", code: "KeyK", ctrlKey: true }, true],
  ["Ctrl T of Dvorak, where a US layout has K", { key: "t", code: "KeyK", ctrlKey: true }, false],
  [
    "AltGr K of a Latvian layout, which is Ctrl Alt on Windows",
    { key: "ķ", code: "KeyK", ctrlKey: true, altKey: true },
    false,
  ],
  ["K alone", { key: "k", code: "KeyK" }, false],
  ["a form that the browser fills in", { ctrlKey: true }, false],
])("%s opens the search, or does not", (_name, event, expected) => {
  expect(isCtrlK(event)).toBe(expected);
});
