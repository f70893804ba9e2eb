/**
 * Draws the folders of each program into docs/architecture.md, from the imports in the code; `--check` only compares, and
 * fails if a picture is stale. Both fail when folders import each other in a circle, types included; so do the folders
 * within a folder that has a ladder of its own.
 */

import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { circleIn, folderGraphs, withPictures } from "../check/folder-graph.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const file = `${root}docs/architecture.md`;
const graphs = await folderGraphs(["orchestrator", "agent", "envd", "interpreter", "cli", "machine", "shared"], root);

const { rooms } = createRequire(import.meta.url)("../check/agent-ladder.cjs") as { readonly rooms: object };
const inner = await folderGraphs(
  Object.keys(rooms).map((folder) => `agent/${folder}`),
  root,
);

const circles = [...graphs, ...inner].flatMap(([program, graph]) => {
  const circle = circleIn(graph);
  return circle === undefined ? [] : [`folders of ${program} import each other in a circle: ${circle}`];
});
const page = await readFile(file, "utf8");

if (circles.length > 0) {
  process.stderr.write(`${circles.join("\n")}\nMove what both need, types too, to the lower folder.\n`);
  process.exitCode = 1;
} else if (!process.argv.includes("--check")) {
  await writeFile(file, withPictures(page, graphs));
} else if (withPictures(page, graphs) !== page) {
  process.stderr.write("the pictures of folders in docs/architecture.md are stale: npm run graph\n");
  process.exitCode = 1;
}
