// Prints a line for each known hole in the runc, Docker, containerd and kernel of this machine that a sandbox could use and
// that no part of the platform blocks. Ends with 0, because a warning is not a failure.
// Usage: node known-holes.mjs [-]     with "-" the facts are read from standard input as JSON, for tests
// machine/known/holes.mjs has the table; SECURITY.md explains it, and why the platform blocks other holes.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { known, WAYS_OUT } from "../../../machine/known/holes.mjs";

function run(program, args) {
  try {
    return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    return "";
  }
}

/** The changelog of a program's package; empty without a package or a changelog. */
function changesOf(program) {
  const path = run("sh", ["-c", 'readlink -f "$(command -v "$1")"', "sh", program]).trim();
  // Where /bin is a link to /usr/bin, the package may know the file by either name.
  const owner = [path, path.replace(/^\/usr/, "")]
    .map((name) => run("dpkg-query", ["-S", name]))
    .find((answer) => answer.includes(": "));
  const name = owner?.split(": ")[0];
  if (name === undefined) return "";
  for (const file of ["changelog.Debian.gz", "changelog.gz"]) {
    try {
      return gunzipSync(readFileSync(`/usr/share/doc/${name}/${file}`)).toString("utf8");
    } catch {
      // Images without documentation have none: then only the version counts.
    }
  }
  return "";
}

function factsOfThisMachine() {
  return {
    runc: { version: /version (\S+)/.exec(run("runc", ["--version"]))?.[1] ?? "", changes: changesOf("runc") },
    kernel: { release: run("uname", ["-r"]).trim(), build: run("uname", ["-v"]).trim() },
  };
}

const facts = process.argv[2] === "-" ? JSON.parse(readFileSync(0, "utf8")) : factsOfThisMachine();
const found = known(facts);
for (const { program, id, what } of found) {
  const version = program === "kernel" ? facts.kernel.release : facts.runc.version;
  process.stdout.write(`${program} ${version} has ${id}: ${what}\n`);
}
for (const program of new Set(found.map((hole) => hole.program)))
  process.stdout.write(`${program}: ${WAYS_OUT[program]} (SECURITY.md)\n`);
