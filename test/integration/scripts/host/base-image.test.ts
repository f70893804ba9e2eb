/** The step of `up` that makes the image of the base template: a machine that joins takes the platform's, or makes its own. */

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const scripts = join(import.meta.dirname, "../../../../scripts");
const TOKEN = "svcjoin1.secret";

/** In the place of what asks the platform: leaves the file that the test has put there, or says why it does not. */
const FROM_PLATFORM = `import { copyFileSync, existsSync, writeFileSync } from "node:fs";
const [urls, , file] = process.argv.slice(2);
writeFileSync(process.env.TRIAL + "/asked", urls + " " + process.env.JOIN_TOKEN);
if (existsSync(process.env.TRIAL + "/given")) copyFileSync(process.env.TRIAL + "/given", file);
else { console.log("https://198.51.100.1:3003: the platform has no base image"); process.exit(3); }
`;
const DOCKER = `#!/bin/bash
case "$1 $2 $*" in
  *--format*) ;;
  "image ls "*latest*) ;;
  "image ls "*) [ ! -e "$TRIAL/image" ] || echo id ;;
  import*) grep -qx whole "\${@: -2:1}" && touch "$TRIAL/image" ;;
esac
status=$?
printf '%s\\n' "$1 \${JOIN_TOKEN-}" >>"$TRIAL/calls"
exit "$status"
`;
const MMDEBSTRAP = `#!/bin/bash
printf 'mmdebstrap %s\\n' "\${JOIN_TOKEN-}" >>"$TRIAL/calls"
printf 'whole\\n' >"\${@: -2:1}"
`;

/** A machine that is about to have the image. */
function machine(given?: string) {
  const home = mkdtempSync(join(tmpdir(), "svc-base-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const own = join(home, "checkout/scripts");
  for (const name of ["lib", "base-image", "host/engine"])
    cpSync(join(scripts, name), join(own, name), { recursive: true });
  const change = (file: string, from: RegExp, to: string) => {
    const text = readFileSync(join(own, file), "utf8");
    expect(text).toMatch(from);
    writeFileSync(join(own, file), text.replace(from, to));
  };
  change("lib/instance.sh", /^CONFIG_DIR=.*$/m, `CONFIG_DIR=${home}/etc`);
  change("lib/engine.sh", /^docker_cli\(\).*$/m, 'docker_cli() { docker "$@"; }');
  const mirror =
    "codename() { echo bookworm; }\napt_source_for() { printf 'list\\ndeb x\\n'; }\nkeyrings_of() { :; }\n";
  writeFileSync(join(own, "lib/apt-mirror.sh"), mirror);
  writeFileSync(join(own, "host/engine/base-node"), "#!/bin/bash\n", { mode: 0o755 });
  writeFileSync(join(own, "host/engine/base-from-platform.mjs"), FROM_PLATFORM);
  for (const name of ["etc", "bin"]) mkdirSync(join(home, name));
  writeFileSync(join(home, "etc/fleet.env"), 'SVC_ORCHESTRATOR_URL="https://198.51.100.1:3003"\n');
  writeFileSync(join(home, "bin/docker"), DOCKER, { mode: 0o755 });
  writeFileSync(join(home, "bin/mmdebstrap"), MMDEBSTRAP, { mode: 0o755 });
  // `gzip` would make the archive of the trial unreadable for the stand-in of Docker.
  writeFileSync(join(home, "bin/gzip"), '#!/bin/bash\ncat "${@: -1}"\n', { mode: 0o755 });
  if (given !== undefined) writeFileSync(join(home, "given"), given);
  const run = (token?: string) => {
    const env = { PATH: `${home}/bin:${process.env["PATH"]}`, TRIAL: home };
    const { status, stdout, stderr } = spawnSync(join(own, "host/engine/base-image"), [join(home, "state")], {
      encoding: "utf8",
      env: token === undefined ? env : { ...env, JOIN_TOKEN: token },
    });
    expect(stderr).toBe("");
    return { status, said: stdout };
  };
  const textOf = (name: string) => (existsSync(join(home, name)) ? readFileSync(join(home, name), "utf8").trim() : "");
  return { run, textOf, archives: () => readdirSync(join(home, "state/cache")) };
}

test("a machine that joins takes the platform's image, and apt is not asked for anything", () => {
  const { run, textOf, archives } = machine("whole\n");
  const { status, said } = run(TOKEN);
  expect(status).toBe(0);
  expect(said).toMatch(/svc\/base:[0-9a-f]{12}, taken from the platform\n/);
  expect(textOf("asked")).toBe(`https://198.51.100.1:3003 ${TOKEN}`);
  expect(textOf("calls")).not.toContain("mmdebstrap");
  expect(archives()).toEqual([expect.stringMatching(/^base-[0-9a-f]{12}\.tar\.gz$/)]);
  // The second run has nothing to take.
  expect(run(TOKEN).said).toMatch(/was there\n/);
});

test.each([
  ["has none", undefined, "https://198.51.100.1:3003: the platform has no base image"],
  ["gives one that Docker cannot import", "cut off", "Docker cannot import it"],
])("where the platform %s, the machine makes its own image and says why", (_what, given, reason) => {
  const { run, textOf, archives } = machine(given);
  const { status, said } = run(TOKEN);
  expect(status).toBe(0);
  expect(said).toContain(`built here, because the platform's own was not to be had (${reason})`);
  expect(textOf("calls")).toContain("mmdebstrap");
  expect(archives()).toHaveLength(1);
});

test("no program but the one that asks the platform gets the join token", () => {
  const { run, textOf } = machine();
  run(TOKEN);
  expect(textOf("asked")).toContain(TOKEN);
  expect(textOf("calls")).toMatch(/mmdebstrap/);
  expect(textOf("calls")).not.toContain(TOKEN);
});

test("a machine without a join token asks no platform", () => {
  const { run, textOf } = machine("whole\n");
  expect(run().said).toMatch(/svc\/base:[0-9a-f]{12}, built\n/);
  expect(textOf("asked")).toBe("");
});
