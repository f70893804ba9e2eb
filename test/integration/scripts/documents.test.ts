/** The documents lead where they say: links, anchors and named files exist. READMEs of folders and folders of tests stay small. */

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((file) => file !== "" && existsSync(join(root, file)));
const documents = files.filter((file) => file.endsWith(".md"));
const textOf = (file: string) => readFileSync(join(root, file), "utf8");

/** The anchors of a document's headings, as the usual renderers of Markdown make them. */
function anchorsOf(file: string): readonly string[] {
  const text = textOf(file).replaceAll(/^```[^]*?^```/gm, "");
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test("every link of a document leads to a file that exists, and to a heading of it", () => {
  const lost = documents.flatMap((file) => {
    const text = textOf(file).replaceAll(/^```[^]*?^```/gm, "");
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
    return links
      .filter((link) => !/^[a-z]+:/.test(link))
      .filter((link) => {
        const [path = "", anchor] = link.split("#");
        const target = path === "" ? file : join(dirname(file), path);
        if (!existsSync(join(root, target))) return true;
        return anchor !== undefined && target.endsWith(".md") && !anchorsOf(target).includes(anchor);
      })
      .map((link) => `${file}: ${link}`);
  });
  expect(lost).toEqual([]);
});

test("every page of docs/ that a source, a script or a message names exists", () => {
  const lost = files
    .filter((file) => !file.endsWith(".md") && !file.startsWith("test/") && !/\.(svg|png|lock|json)$/.test(file))
    .flatMap((file) => [...textOf(file).matchAll(/docs\/[a-z/-]+\.md/g)].map(([page]) => [file, page]))
    .filter(([, page = ""]) => !existsSync(join(root, page)));
  expect(lost).toEqual([]);
});

test("every source file that a document names in backquotes exists", () => {
  const named = documents
    .filter((file) => file !== "CHANGELOG.md")
    .flatMap((file) => {
      const text = textOf(file).replaceAll(/^```[^]*?^```/gm, "");
      return [...text.matchAll(/`([a-z0-9_./-]+\.(?:ts|mjs|cjs|c|sh|py))`/g)].map(([, name = ""]) => [file, name]);
    });
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter(([, name = ""]) => !files.some((file) => `/${file}`.endsWith(`/${name}`)))).toEqual([]);
});

test("every page below docs/operating is in the contents of docs/operating.md", () => {
  const contents = textOf("docs/operating.md");
  const pages = documents.filter((file) => file.startsWith("docs/operating/"));
  expect(pages.length).toBeGreaterThan(5);
  expect(pages.filter((page) => !contents.includes(`](${page.slice("docs/".length)})`))).toEqual([]);
});

test("the README of a folder has at most 80 lines, and that of the whole at most 150", () => {
  const long = documents
    .filter((file) => file.endsWith("README.md"))
    .map((file) => [file, textOf(file).trimEnd().split("\n").length] as const)
    .filter(([file, lines]) => lines > (file === "README.md" ? 150 : 80));
  expect(long).toEqual([]);
});

test("no folder of tests has more than 25 files", () => {
  const counts = new Map<string, number>();
  for (const file of files.filter((one) => one.startsWith("test/"))) {
    counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  }
  expect([...counts].filter(([, count]) => count > 25)).toEqual([]);
});
