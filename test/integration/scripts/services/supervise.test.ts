/** A program without systemd: `supervise` gives it its settings as files that only its user reads. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const script = join(import.meta.dirname, "../../../../scripts/host/services/supervise");
/** In the place of the programs' own user, which a machine without the platform lacks. */
const USER = "daemon";

const PROGRAM = `
const { readFileSync, readdirSync, statSync, renameSync, writeFileSync } = require("node:fs");
const directory = process.env.CREDENTIALS_DIRECTORY;
const files = Object.fromEntries(readdirSync(directory).map((name) => [name, readFileSync(directory + "/" + name, "utf8")]));
const modes = [directory, ...Object.keys(files).map((name) => directory + "/" + name)].map((path) => (statSync(path).mode & 0o777).toString(8));
const owners = new Set(Object.keys(files).map((name) => statSync(directory + "/" + name).uid));
writeFileSync("SAID.new", JSON.stringify({ uid: process.getuid(), owners: [...owners], files, modes, environment: readFileSync("/proc/self/environ", "utf8") }));
renameSync("SAID.new", "SAID");
setInterval(() => {}, 60_000);
`;

interface Said {
  readonly uid: number;
  readonly owners: readonly number[];
  readonly files: Record<string, string>;
  readonly modes: readonly string[];
  readonly environment: string;
}

/** A supervisor whose places are directories of this test. */
function machine(program: string) {
  const home = mkdtempSync(join(tmpdir(), "svc-supervise-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  for (const name of ["etc", "run", "app", "said"]) mkdirSync(join(home, name), { mode: 0o755 });
  const open = (path: string) => spawn("chmod", ["0777", path]);
  const said = join(home, "said/said");
  writeFileSync(join(home, `app/${program}.js`), PROGRAM.replaceAll("SAID", said));
  symlinkSync(process.execPath, join(home, "app/node"));
  writeFileSync(join(home, `etc/${program}.env`), "SVC_SEED=of-a-secret\n", { mode: 0o600 });
  writeFileSync(join(home, `etc/${program}.own.env`), 'SVC_DOMAIN="a.example"\n', { mode: 0o600 });
  writeFileSync(join(home, "etc/node.env"), 'NODE_EXTRA_CA_CERTS="/nowhere/ca.pem"\n', { mode: 0o600 });
  const text = readFileSync(script, "utf8")
    .replace(/^config=.*$/m, `config=${home}/etc`)
    .replace(/^run=.*$/m, `run=${home}/run`)
    .replace(/^app=.*$/m, `app=${home}/app`)
    .replace(/^user=.*$/m, `user=${USER}`);
  writeFileSync(join(home, "app/supervise"), text, { mode: 0o755 });
  const start = async () => {
    for (const path of [home, join(home, "said")]) await once(open(path), "exit");
    const process_ = spawn("/bin/bash", ["-p", join(home, "app/supervise"), "", program], {
      detached: true,
      stdio: ["ignore", "pipe", "ignore"],
    });
    onTestFinished(() => {
      try {
        process.kill(-(process_.pid ?? 0), "SIGKILL");
      } catch {
        // It has ended.
      }
    });
    return process_;
  };
  return { home, start, said: () => JSON.parse(readFileSync(said, "utf8")) as Said, hasSaid: () => existsSync(said) };
}

test.each([
  ["orchestrator", false],
  ["agent", true],
])("the %s reads its settings, and no environment and no other user has them", async (program, asRoot) => {
  const { home, start, said, hasSaid } = machine(program);
  const supervisor = await start();
  await expect.poll(hasSaid).toBe(true);
  const { uid, owners, files, modes, environment } = said();
  expect(uid === 0).toBe(asRoot);
  expect(owners).toEqual([uid]);
  expect(files).toEqual({ settings: "SVC_SEED=of-a-secret\n", "own-settings": 'SVC_DOMAIN="a.example"\n' });
  expect(modes).toEqual(["500", "400", "400"]);
  expect(environment).not.toContain("of-a-secret");
  expect(environment).toContain("NODE_EXTRA_CA_CERTS=/nowhere/ca.pem");
  supervisor.kill("SIGTERM");
  await once(supervisor, "exit");
  expect(existsSync(join(home, "run/credentials", program))).toBe(false);
});

test("a program whose settings cannot be given is not started without them", async () => {
  const { home, start, hasSaid } = machine("agent");
  rmSync(join(home, "etc/agent.own.env"));
  const { stdout } = await start();
  const [line] = (await once(stdout, "data")) as [Buffer];
  expect(line.toString()).toContain("agent ended with status 1, starting it again");
  expect(hasSaid()).toBe(false);
});
