// Exit status 0 when node_modules holds what package-lock.json asks for, this Node is the one that it asks for, and the native add-on
// loads. Compares npm's list of installed packages with the lock file, and ignores packages for other platforms.
// Usage: modules-in-sync.mjs [--omit=dev]     with it, the tools of checks and tests may be missing
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const read = (file) => JSON.parse(readFileSync(file, "utf8")).packages;
const mayMiss = process.argv[2] === "--omit=dev" ? ({ dev, devOptional }) => dev || devOptional : () => false;
let reason;
try {
  const wanted = read("package-lock.json");
  const installed = read("node_modules/.package-lock.json");
  for (const [path, entry] of Object.entries(wanted)) {
    const { version, optional } = entry;
    if (path === "" || installed[path]?.version === version) continue;
    if (!installed[path] && (optional || mayMiss(entry))) continue;
    reason = `${path} is ${installed[path]?.version ?? "missing"}, not ${version}`;
    break;
  }
  const node = wanted[`node_modules/node-linux-${process.arch}`]?.version;
  if (!reason && node !== process.versions.node) reason = `Node is ${process.versions.node}, not ${node}`;
  if (!reason) {
    const Database = createRequire(`${process.cwd()}/package.json`)("better-sqlite3");
    new Database(":memory:").close();
  }
} catch (error) {
  reason = error.message;
}
if (reason) {
  process.stdout.write(`${reason.split("\n")[0]}\n`);
  process.exit(1);
}
