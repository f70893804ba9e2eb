/** Writes shared/openapi.json from the contract; `--check` only compares, and fails if the file is stale. */

import { readFile, writeFile } from "node:fs/promises";
import { describedApi } from "../../shared/api/public.ts";
import { toOpenApi } from "../../shared/http/openapi.ts";

const file = new URL("../../shared/openapi.json", import.meta.url);
const wanted = `${JSON.stringify(toOpenApi(describedApi), null, 2)}\n`;

if (process.argv.includes("--check")) {
  const found = await readFile(file, "utf8").catch(() => "");
  if (found !== wanted) {
    process.stderr.write("shared/openapi.json is stale: npm run openapi\n");
    process.exitCode = 1;
  }
} else {
  await writeFile(file, wanted);
}
