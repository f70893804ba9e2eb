// Prints the packages that the scripts of the Debian package import, with all that these need, as directories below node_modules, a
// line each. Usage: node closure.mjs LOCK-FILE PACKAGE…
import { readFileSync } from "node:fs";

const [lockFile, ...asked] = process.argv.slice(2);
const { packages } = JSON.parse(readFileSync(lockFile, "utf8"));
const found = new Set();

/** Where Node finds the package when a file of the other one imports it; undefined: it is optional, and not for this platform. */
function placeOf(name, from) {
  for (let place = from; ; place = place.slice(0, Math.max(0, place.lastIndexOf("node_modules/") - 1))) {
    const candidate = `${place === "" ? "" : `${place}/`}node_modules/${name}`;
    if (candidate in packages) return candidate;
    if (place === "") return undefined;
  }
}

function add(name, from, isOptional) {
  const place = placeOf(name, from);
  if (place === undefined && !isOptional) throw new Error(`${name}, which ${from} imports, is not in ${lockFile}`);
  if (place === undefined || found.has(place)) return;
  found.add(place);
  const { dependencies = {}, optionalDependencies = {} } = packages[place];
  for (const dependency of Object.keys(dependencies)) add(dependency, place, dependency in optionalDependencies);
}

for (const name of asked) add(name, "", false);
process.stdout.write(
  [...found]
    .sort((one, other) => (one < other ? -1 : 1))
    .map((place) => `${place}\n`)
    .join(""),
);
