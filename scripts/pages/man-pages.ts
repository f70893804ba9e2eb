/** `npm run man-pages`: writes the manual pages of `svc` to dist/man, from the definitions of its commands. */

import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { COMMANDS, GROUPS } from "../../cli/definitions/all.ts";
import { VERSION } from "../../shared/version.ts";
import { manPages } from "../lib/programs/man-page.ts";

const folder = resolve(process.argv[2] ?? join(import.meta.dirname, "../../dist/man"));
// A command that is no more would leave its page.
await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
for (const { file, text } of manPages({ commands: COMMANDS, groups: GROUPS, version: VERSION })) {
  await writeFile(join(folder, file), text);
}
