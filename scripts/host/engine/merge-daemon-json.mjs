// Adds the `svc` runtime to the settings file of the Docker daemon, or removes it.
// Usage: node merge-daemon-json.mjs FILE add PATH | remove | tidy
// All other settings in the file stay; prints "changed" or "unchanged". Keeps a copy of the file from
// before the first change beside it. The daemon forgets a runtime only when it reads a list without
// it, so `remove` leaves a list, even an empty one; after the daemon has read that, `tidy` removes the
// empty list.
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
// Writes to the target of a link, so that the link stays.
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

// Restores the file from before our first change, byte for byte, if nothing else differs; removes a file that is empty now.
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
