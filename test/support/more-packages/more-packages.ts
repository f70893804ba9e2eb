/**
 * Packages that only some tests of starters and rows of the matrix need, and that are too large for everybody's checkout: npm installs
 * them at their first use, at the versions and hashes of the lock file beside this.
 */

import { existsSync, readFileSync } from "node:fs";
import { copyFile, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { checkout } from "../platform/platform.ts";
import { run } from "../platform/programs.ts";

const FILES = ["package.json", "package-lock.json"] as const;
/** Below the checkout's own packages, where no check looks, and which `npm ci` empties. */
const directory = join(checkout, "node_modules/.cache/more-packages");
const LIMIT_MS = 900_000;
/** Written last: an install that was cut short is begun again. */
const mark = join(directory, "installed");

/** The directory that has them in `node_modules`. */
export async function morePackages(): Promise<string> {
  const lock = readFileSync(join(import.meta.dirname, "package-lock.json"), "utf8");
  if (existsSync(mark) && readFileSync(mark, "utf8") === lock) return directory;
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  for (const name of FILES) await copyFile(join(import.meta.dirname, name), join(directory, name));
  const ci = ["ci", "--prefix", directory, "--ignore-scripts", "--no-audit", "--no-fund"];
  await run("npm", ci, {}, LIMIT_MS);
  await writeFile(mark, lock);
  // Root runs the tests, and `npm ci` is the owner's.
  await run("chown", ["-R", `--reference=${checkout}`, dirname(directory)]);
  return directory;
}
