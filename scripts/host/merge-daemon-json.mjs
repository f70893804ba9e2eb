// Adds the `svc` runtime to the settings file of the Docker engine, or takes it out again.
// Usage: node merge-daemon-json.mjs FILE add PATH | remove
// Everything else in the file stays; prints "changed" or "unchanged". A copy of the file as it was
// before the first change is kept beside it.
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const [file, verb, path] = process.argv.slice(2);
const existed = existsSync(file);
const before = existed ? readFileSync(file, "utf8") : "";
const settings = before.trim() === "" ? {} : JSON.parse(before);
const runtimes = { ...settings.runtimes };
const wanted = verb === "add" ? { path } : undefined;

if (JSON.stringify(runtimes.svc) === JSON.stringify(wanted)) {
  process.stdout.write("unchanged\n");
} else {
  if (wanted) runtimes.svc = wanted;
  else delete runtimes.svc;
  const after = { ...settings, runtimes };
  if (Object.keys(runtimes).length === 0) delete after.runtimes;
  if (existed && !existsSync(`${file}.before-svc`)) copyFileSync(file, `${file}.before-svc`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, `${JSON.stringify(after, null, 2)}\n`, { mode: 0o644 });
  renameSync(`${file}.new`, file);
  // A file that held nothing but our entry was ours, or as good as absent.
  if (!wanted && Object.keys(after).length === 0 && !existsSync(`${file}.before-svc`)) rmSync(file);
  process.stdout.write("changed\n");
}
