/** `scripts/rotate api-key` on a real orchestrator, killed at each of its lines. */

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

const library = join(import.meta.dirname, "../../../../scripts/lib");
/** It starts some hundred short processes. */
const SLOW = { timeout: 480_000 };

interface Key {
  readonly id: string;
  readonly name: string;
  readonly expiresAt: string | null;
}

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

/** A machine of a project of its own, with that project's key in the file of the checkout and in the machine's. */
async function machine(name: string) {
  const { key } = await cluster.addProject(name);
  const home = mkdtempSync(join(tmpdir(), "svc-api-key-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const own = join(home, "own");
  const etc = join(home, "etc");
  for (const folder of [own, etc]) mkdirSync(folder);
  writeFileSync(join(own, "env"), `# of users\nSVC_API_KEY=${key}\nE2B_API_KEY=e2b_${key.slice(4)}\nSVC_API_URL=x\n`);
  writeFileSync(join(etc, "api-key"), `${key}\n`);
  const inEnv = () => /^SVC_API_KEY=(.*)$/m.exec(readFileSync(join(own, "env"), "utf8"))?.[1] ?? "";
  return {
    first: key,
    etc,
    own,
    inEnv,
    kept: () => readFileSync(join(etc, "api-key"), "utf8").trim(),
    works: async (which: string) => (await cluster.ask("GET", "/api-keys", { key: which })).status === 200,
    keys: async () => (await cluster.ask("GET", "/api-keys", { key: inEnv() })).body as readonly Key[],
    /** @param before bash that runs first: what cuts the script */
    rotate: (before = "", overlap = 3600) => {
      const parts = ["environment", "ui", "instance", "api-key"].map((part) => `. ${library}/${part}.sh`);
      const secrets = ["rotation", "api-calls", "api-key-rotation"].map((part) => `. ${library}/secrets/${part}.sh`);
      const places = `CONFIG_DIR=${etc}; OWN_DIR=${own}; api=${cluster.url}`;
      return bash([...parts, ...secrets, places, before, `replace_api_key ${overlap}`].join("\n"));
    },
  };
}

function bash(text: string): Promise<{ readonly status: number | null; readonly said: string }> {
  const child = spawn("bash", ["-euo", "pipefail", "-c", text], { env: { ...process.env, SVC_INSTANCE: "" } });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part: Buffer) => void (said += String(part)));
  // Parts of a pipe outlive the shell that is killed: they hold its output open until they end.
  return new Promise((resolve) => child.once("close", (status) => resolve({ status, said })));
}

const endless = (keys: readonly Key[]) => keys.filter(({ expiresAt }) => expiresAt === null);

test("a new key is in both files, and the earlier one ends after the overlap, or at once", SLOW, async () => {
  const { first, inEnv, kept, keys, works, rotate, own } = await machine("whole");
  expect(await rotate()).toMatchObject({ status: 0 });
  const second = inEnv();
  expect(second).not.toBe(first);
  expect(kept()).toBe(second);
  const lines = ["# of users", `SVC_API_KEY=${second}`, `E2B_API_KEY=e2b_${second.slice(4)}`, "SVC_API_URL=x", ""];
  expect(readFileSync(join(own, "env"), "utf8")).toBe(lines.join("\n"));
  const [former] = (await keys()).filter(({ expiresAt }) => expiresAt !== null);
  expect((Date.parse(former?.expiresAt ?? "") - Date.now()) / 1000).toBeGreaterThan(3_400);
  expect(await works(first)).toBe(true);

  expect(await rotate("", 0)).toMatchObject({ status: 0 });
  expect(await works(second)).toBe(false);
  expect(await works(inEnv())).toBe(true);
});

test("a checkout whose key has ended takes the machine's and replaces that", SLOW, async () => {
  const { first, inEnv, kept, works, rotate, own } = await machine("ended");
  writeFileSync(join(own, "env"), `SVC_API_KEY=svc_${"0".repeat(40)}\n`);
  expect(await rotate("", 0)).toMatchObject({ status: 0 });
  expect([inEnv(), await works(inEnv()), await works(first)]).toEqual([kept(), true, false]);
});

/** The lines of `rewrite`, which replaces the file of the checkout, have a test of their own. */
const TRACED = "replace_api_key|note_rotation|delete_lost_key|keep_api_key";

/** Before each command of these functions: bash that sees its function and line. */
const atEach = (command: string) => `set -T; trap '[[ $\{FUNCNAME[0]:-} =~ ^(${TRACED})$ ]] && ${command} || :' DEBUG`;

/** What ends an earlier run: the first leaves a key that nobody has, the second one that only the note has. */
const LOST = `local_curl() { command curl -q --noproxy '*' "$@"; if [[ $* == *POST* ]]; then kill -KILL "$$"; fi; }`;
const NOTED = 'put_api_key() { kill -KILL "$$"; }';

test(
  "killed with -9 at any line, it leaves a key that works in each file, and the next run goes on",
  SLOW,
  async () => {
    const { etc, inEnv, kept, keys, works, rotate } = await machine("cut");
    const noted = join(etc, "api-key.rotation");
    const state = async () => JSON.stringify([inEnv(), kept(), existsSync(noted), endless(await keys()).length]);
    const trace = join(etc, "trace");
    const cuts = new Map<string, string>();
    for (const before of ["", LOST, NOTED]) {
      if (before !== "") await rotate(before);
      writeFileSync(trace, "");
      await rotate(atEach(`printf "%s:%s\\n" "$\{FUNCNAME[0]}" "$LINENO" >>${trace}`));
      for (const line of readFileSync(trace, "utf8").trim().split("\n")) {
        if (!cuts.has(line)) cuts.set(line, before);
      }
    }
    expect(cuts.size).toBeGreaterThan(25);

    for (const [line, before] of cuts) {
      if (before !== "") await rotate(before);
      const there = await state();
      const cut = await rotate(atEach(`[ "$\{FUNCNAME[0]}:$LINENO" = "${line}" ] && kill -KILL "$$"`));
      expect(cut.status, line).toBeNull();
      expect([await works(inEnv()), await works(kept())], line).toEqual([true, true]);
      // The first lines change nothing.
      if (before === "" && (await state()) === there) continue;
      expect(await rotate(), line).toMatchObject({ status: 0 });
      // One key has no end, and everybody has that one; what a cut run has lost is gone.
      expect(endless(await keys()), line).toHaveLength(1);
      expect([await works(inEnv()), kept()], line).toEqual([true, inEnv()]);
      expect(existsSync(noted), line).toBe(false);
    }
  },
);

test(
  "killed while the platform makes the key, it leaves one that nobody has, which the next run deletes",
  SLOW,
  async () => {
    const { first, inEnv, kept, keys, rotate } = await machine("lost");
    expect((await rotate(LOST)).status).toBeNull();
    expect([inEnv(), kept(), endless(await keys()).length]).toEqual([first, first, 2]);
    expect(await rotate()).toMatchObject({ status: 0 });
    expect(endless(await keys())).toHaveLength(1);
    expect(inEnv()).not.toBe(first);
  },
);
