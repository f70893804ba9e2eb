// Adds the `svc` runtime to the settings file of the Docker daemon, or removes it.
// Usage: node merge-daemon-json.mjs FILE add PATH | remove | tidy
// Everything else in the file stays; prints "changed" or "unchanged". A copy of the file as it was
// before the first change is kept beside it. The daemon forgets a runtime only when it reads a list
// without it, so `remove` leaves a list, be it empty; after the daemon has read that, `tidy` takes an
// empty one away.
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
const backup = `${file}.before-svc`;

process.stdout.write(verb === "tidy" ? tidy() : merge(verb === "add" ? { path } : undefined));

function merge(wanted) {
  const runtimes = { ...settings.runtimes };
  if (JSON.stringify(runtimes.svc) === JSON.stringify(wanted)) return "unchanged\n";
  if (wanted) runtimes.svc = wanted;
  else delete runtimes.svc;
  if (existed && wanted && !existsSync(backup)) copyFileSync(file, backup);
  mkdirSync(dirname(file), { recursive: true });
  write({ ...settings, runtimes });
  return "changed\n";
}

// Without our entry the file may be what it was before us: then it is that, byte for byte, or gone.
function tidy() {
  const after = { ...settings };
  if (Object.keys(after.runtimes ?? {}).length === 0) delete after.runtimes;
  if (existsSync(backup)) {
    const original = JSON.parse(readFileSync(backup, "utf8").trim() || "{}");
    if (JSON.stringify(original) === JSON.stringify(after)) renameSync(backup, file);
    else write(after);
  } else if (Object.keys(after).length === 0) {
    rmSync(file, { force: true });
  } else {
    write(after);
  }
  return "tidied\n";
}

function write(after) {
  writeFileSync(`${file}.new`, `${JSON.stringify(after, null, 2)}\n`, { mode });
  renameSync(`${file}.new`, file);
}
