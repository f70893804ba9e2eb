// Adds the `svc` runtime to the settings file of the Docker engine, or takes it out again.
// Usage: node merge-daemon-json.mjs FILE add PATH | remove
// Everything else in the file stays; prints "changed" or "unchanged". A copy of the file as it was
// before the first change is kept beside it.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

const [named, verb, path] = process.argv.slice(2);
const existed = existsSync(named);
// A link stays a link.
const file = existed ? realpathSync(named) : named;
const mode = existed ? statSync(file).mode & 0o777 : 0o644;
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
  if (existed && wanted && !existsSync(`${file}.before-svc`)) copyFileSync(file, `${file}.before-svc`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, `${JSON.stringify(after, null, 2)}\n`, { mode });
  renameSync(`${file}.new`, file);
  if (!wanted) restoreOriginal(after);
  process.stdout.write("changed\n");
}

// Without our entry the file may be what it was before us: then it is that, byte for byte, or gone.
function restoreOriginal(after) {
  const backup = `${file}.before-svc`;
  if (existsSync(backup)) {
    if (JSON.stringify(JSON.parse(readFileSync(backup, "utf8"))) === JSON.stringify(after)) renameSync(backup, file);
  } else if (Object.keys(after).length === 0) {
    rmSync(file);
  }
}
