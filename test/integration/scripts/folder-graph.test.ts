/** The pictures of folders: what is in them, when they are stale, and circles of folders that no circle of files shows. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { circleIn, folderGraphs, picture, withPictures } from "../../../scripts/check/folder-graph.ts";

/** Reads the graph of a program `one` with these files, each with the paths that it imports. */
async function graphOf(files: Readonly<Record<string, readonly string[]>>, of = "one") {
  const tree = realpathSync(mkdtempSync(join(tmpdir(), "svc-graph-")));
  onTestFinished(() => rmSync(tree, { recursive: true }));
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), text);
  };
  put("tsconfig.json", "{}");
  for (const [file, imports] of Object.entries(files)) {
    const lines = imports.map((to) => `import type { Of } from "${to}";`);
    put(`one/${file}`, `${lines.join("\n")}\nexport type Of = string;\n`);
  }
  const graph = (await folderGraphs([of], tree)).get(of);
  if (graph === undefined) throw new Error("no graph of the program");
  return graph;
}

test("folders that import each other's types are a circle, although no file is in one", async () => {
  const graph = await graphOf({
    "api/a.ts": ["../store/b.ts"],
    "store/b.ts": [],
    "store/inner/c.ts": ["../../forms/d.ts"],
    "forms/d.ts": ["../api/e.ts"],
    "api/e.ts": [],
  });
  expect(circleIn(graph)).toBe("api → store → forms → api");
});

test("the folders within a folder are looked at alone", async () => {
  const graph = await graphOf(
    { "api/in/a.ts": ["../out/b.ts", "../../store/c.ts"], "api/out/b.ts": ["../in/a.ts"], "store/c.ts": [] },
    "one/api",
  );
  expect(circleIn(graph)).toBe("in → out → in");
});

test("a picture has every folder, and no arrow where a longer way down leads to the same folder", async () => {
  const graph = await graphOf({
    "main.ts": ["./api/a.ts", "./store/b.ts"],
    "api/a.ts": ["../store/b.ts"],
    "store/b.ts": [],
    "alone/c.ts": [],
  });
  expect(circleIn(graph)).toBeUndefined();
  expect(picture(graph).split("\n")).toEqual([
    "```mermaid",
    "flowchart TD",
    "  alone",
    "  api --> store",
    "  main.ts --> api",
    "  store",
    "```",
  ]);
});

test("a page changes when a folder imports another one, and only between the marks of its program", () => {
  const page = "before\n<!-- folders of one: drawn -->\nold\n<!-- end of folders -->\nafter\n";
  const drawn = withPictures(page, new Map([["one", new Map([["a", ["b"]]])]]));
  expect(drawn).toMatch(
    /^before\n<!-- folders of one: drawn -->\n```mermaid\n[^]*a --> b\n```\n<!-- end of folders -->\nafter\n$/,
  );
  expect(withPictures(drawn, new Map([["one", new Map([["a", ["b"]]])]]))).toBe(drawn);
  expect(withPictures(drawn, new Map([["one", new Map([["a", ["c"]]])]]))).not.toBe(drawn);
});
