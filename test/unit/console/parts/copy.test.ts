/** Text is copied also on plain HTTP, where browsers give a page no clipboard, and a refusal is told. */

import { afterEach, expect, test, vi } from "vitest";
import { pageFile } from "../page-files.ts";

const { copyText } = await pageFile<{ readonly copyText: (text: string) => Promise<void> }>("parts/copy.ts");

afterEach(() => {
  vi.unstubAllGlobals();
});

/** A document that copies what is marked in it, or refuses. */
function documentThat(isCopying: boolean) {
  const seen: string[] = [];
  const area = { value: "", className: "", select: () => seen.push("marked"), remove: () => seen.push("removed") };
  vi.stubGlobal("HTMLElement", Map);
  vi.stubGlobal("document", {
    activeElement: null,
    body: { append: () => seen.push("shown") },
    createElement: () => area,
    execCommand(what: string) {
      seen.push(`${what} ${area.value}`);
      return isCopying;
    },
  });
  return seen;
}

test("the page's clipboard takes the text where there is one", async () => {
  const taken: string[] = [];
  vi.stubGlobal("navigator", { clipboard: { writeText: (text: string) => Promise.resolve(void taken.push(text)) } });
  await copyText("a");
  expect(taken).toEqual(["a"]);
});

test("on plain HTTP the text is marked and copied, and nothing of it stays in the page", async () => {
  vi.stubGlobal("navigator", {});
  const seen = documentThat(true);
  await copyText("a");
  expect(seen).toEqual(["shown", "marked", "copy a", "removed"]);
});

test("a browser that does not copy is told, in both ways", async () => {
  const refusal = "The browser has not copied it: mark the text, and copy it by hand.";
  vi.stubGlobal("navigator", { clipboard: { writeText: () => Promise.reject(new Error("denied")) } });
  await expect(copyText("a")).rejects.toThrow(refusal);
  vi.stubGlobal("navigator", {});
  documentThat(false);
  await expect(copyText("a")).rejects.toThrow(refusal);
});
