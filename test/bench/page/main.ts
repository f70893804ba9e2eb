/** `npm run bench:page [-- bench-results.json]`: writes docs/benchmarks.md and its pictures from the results of a bench. */

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { VERSION } from "../../../shared/version.ts";
import { pageOf, type Results } from "./page.ts";

const [file = "bench-results.json"] = process.argv.slice(2);
const docs = fileURLToPath(new URL("../../../docs/", import.meta.url));
const results = JSON.parse(readFileSync(file, "utf8")) as Omit<Results, "version">;
for (const [name, content] of Object.entries(pageOf({ ...results, version: VERSION }))) {
  writeFileSync(`${docs}${name}`, content);
  console.log(`written: docs/${name}`);
}
