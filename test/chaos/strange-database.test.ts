/**
 * The orchestrator comes with an empty database, with yesterday's, and with that of another platform, while sandboxes run
 * and are paused on the node. Nothing of them is lost; the node takes no work; one command adopts them, and the true
 * database finds them. SVC_TEST_KEPT_SANDBOXES is the number of each kind.
 */

import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "e2b";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { agentPage } from "../support/platform/agent-pages.ts";
import { dropFrozen } from "../support/platform/frozen.ts";
import { containersOf } from "../support/platform/host-objects.ts";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { api, asAdmin, checkout, openPlatform } from "../support/platform/platform.ts";
import { run, service, settingOf, untilReady } from "../support/platform/programs.ts";
import { addOwnSetting, hostStep } from "../support/platform/settings.ts";
import { swappedDatabase } from "../support/platform/swapped-database.ts";
import { createLasting, expectAllThere, inTurn, type Lasting, pauseAll } from "../support/sandbox/lasting.ts";
import { whereabouts } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
const database = swappedDatabase(platform);
const node = settingOf(platform, "agent", "SVC_NODE_ID");
const COUNT = Number(process.env.SVC_TEST_KEPT_SANDBOXES ?? "2");
/** After this time the orchestrator has a node hold what its database does not name. */
const GRACE_MS = 1_000;
const LIMIT_MS = 300_000 + COUNT * 60_000;
const folder = mkdtempSync(join(tmpdir(), "svc-databases-"));
const settings = { restore: () => Promise.resolve() };
const lines: string[] = [];
let begun = Date.now();

beforeAll(async () => {
  await untilReady(platform);
  settings.restore = addOwnSetting(platform, `SVC_ORPHAN_GRACE_MS=${GRACE_MS}`);
  await hostStep(platform, "settings", "replace");
  await service(platform, "restart", "orchestrator");
  await untilReady(platform);
}, 120_000);
afterAll(async () => {
  await settings.restore();
  await service(platform, "restart", "orchestrator");
  await untilReady(platform);
  rmSync(folder, { recursive: true });
  console.log(lines.join("\n"));
}, 120_000);
beforeEach(() => {
  begun = Date.now();
});
// Also after a failure the chaos set goes on with the true database.
afterEach(async () => {
  await database.putBack();
  if ((await refused()) !== undefined) await scriptsNode("adopt");
  await untilReady(platform);
  await inTurn(await allIds(), (id) => Sandbox.kill(id));
  await expectNoProblems(platform);
}, 180_000);

describe(`with ${COUNT} running and ${COUNT} paused sandboxes`, () => {
  test(
    "an empty database loses none: the node refuses it, one command adopts all, and the true one finds all",
    async () => {
      const kept = await runningAndPaused();
      await survives(kept, undefined);
      note("adopt", await scriptsNode("adopt"));
      await untilReady(platform);
      await expectAllThere([...kept.running, ...kept.paused], await newKey("default"));
      note("adopted: each runs, or was resumed with its memory");
      await backByAdoption(kept);
    },
    LIMIT_MS,
  );

  test(
    "an older database loses none, brings no ended sandbox back, and adopts what has changed since",
    async () => {
      const early = await runningAndPaused();
      const [ended] = await createLasting(1);
      if (ended === undefined) throw new Error("no sandbox was made");
      const backup = join(folder, "older.db");
      await database.backUp(backup);
      // After the copy: an end, a pause, a resume, and more sandboxes.
      await Sandbox.kill(ended.id);
      const [runs, stands] = [early.running[0], early.paused[0]];
      if (runs === undefined || stands === undefined) throw new Error("SVC_TEST_KEPT_SANDBOXES is too small");
      await Sandbox.connect(stands.id, { timeoutMs: 3_600_000 });
      await pauseAll([runs]);
      const late = await createLasting(2);
      await pauseAll(late.slice(1));
      const kept = {
        running: [...early.running.slice(1), stands, ...late.slice(0, 1)],
        paused: [...early.paused.slice(1), runs, ...late.slice(1)],
      };
      // The node learns every few seconds how far its database has come.
      await expect.poll(() => database.isOlderThanHeard(backup), { timeout: 90_000 }).toBe(true);
      await survives(kept, backup);
      expect(await createOn(platform.apiKey)).toMatchObject({ status: 503 });
      for (const { id } of [...kept.paused.slice(0, 1), ...early.running.slice(1, 2)]) {
        const asked = { body: { timeout: 60 } };
        if (id !== runs.id && kept.paused.some((one) => one.id === id)) {
          expect((await api(platform, "POST", `/sandboxes/${id}/connect`, asked)).text).toMatch("scripts/node adopt");
        } else expect((await api(platform, "POST", `/sandboxes/${id}/pause`)).text).toMatch("scripts/node adopt");
      }
      note("adopt", await scriptsNode("adopt"));
      await untilReady(platform);
      await expectAllThere([...kept.running, ...kept.paused], platform.apiKey);
      note("adopted: each runs, or was resumed with its memory");
      await expect
        .poll(() => whereabouts({ sandboxId: ended.id } as Sandbox), { timeout: 90_000 })
        .toBe("SandboxNotFoundError");
      await backByAdoption(kept);
    },
    LIMIT_MS,
  );

  test(
    "the database of another platform loses none: the node refuses it, one command adopts all, and the true one finds all",
    async () => {
      const other = await otherPlatform();
      const kept = await runningAndPaused();
      // What the true database does in between is the same as with the empty one.
      await (COUNT > 2 ? survives : strangeComes)(kept, other.file);
      expect(await createOn(other.key)).toMatchObject({ status: 503 });
      note("adopt", await scriptsNode("adopt"));
      await untilReady(platform);
      await expectAllThere([...kept.running, ...kept.paused], other.key);
      note("adopted: each runs, or was resumed with its memory");
      await backByAdoption(kept);
    },
    LIMIT_MS,
  );
});

interface Kept {
  readonly running: readonly Lasting[];
  readonly paused: readonly Lasting[];
}

async function runningAndPaused(): Promise<Kept> {
  const all = await createLasting(2 * COUNT);
  const kept = { running: all.slice(0, COUNT), paused: all.slice(COUNT) };
  await pauseAll(kept.paused);
  // Every second one resumes from its stored memory, the others from the container that is kept frozen.
  await inTurn(
    kept.paused.filter((_one, index) => index % 2 === 0),
    ({ id }) => dropFrozen(platform, id),
  );
  note(`made ${kept.running.length} running and ${kept.paused.length} paused sandboxes`);
  return kept;
}

/** The strange database comes, goes and comes again; in between the true one serves without a command. */
async function survives(kept: Kept, strange: string | undefined): Promise<void> {
  await strangeComes(kept, strange);
  await database.putBack();
  await untilReady(platform);
  const listed = await listedStates();
  for (const { id } of kept.running) expect(listed.get(id)).toBe("running");
  for (const { id } of kept.paused) expect(listed.get(id)).toBe("paused");
  await expectAllThere(kept.running, platform.apiKey);
  const [first] = kept.paused;
  if (first !== undefined) {
    await expectAllThere([first], platform.apiKey);
    await pauseAll([first]);
  }
  note("the true database serves without a command: all are there");
  await strangeComes(kept, strange);
}

/** Several grace periods pass, and all is on the node as before; every page says why, and names the command. */
async function strangeComes(kept: Kept, strange: string | undefined): Promise<void> {
  const since = Date.now();
  await database.use(strange);
  await expect.poll(refused, { timeout: 90_000 }).toMatch(`scripts/node adopt ${node}`);
  const named = Date.now();
  await expect.poll(() => database.reportedAt() - named, { timeout: 60_000 }).toBeGreaterThan(3 * GRACE_MS);
  const states = new Map((await containersOf(platform)).map(({ name, state }) => [name, state]));
  for (const { id } of kept.running) expect(states.get(`svc-${id}`)).toBe("running");
  for (const { id } of kept.paused) expect(states.has(`svc-${id}`)).toBe(true);
  const store = await api(platform, "GET", `/nodes/${node}/store`, asAdmin(platform));
  const total = kept.running.length + kept.paused.length;
  expect(store.json).toMatchObject({ serves: false, sandboxes: total, snapshots: 0, held: [] });
  const agent = await agentPage(platform, "/readyz");
  expect([agent.status, agent.text]).toEqual([503, expect.stringMatching("scripts/node adopt")]);
  await expect(hostStep(platform, "node-ready", platform.apiUrl)).rejects.toThrow("scripts/node adopt");
  for (const program of ["orchestrator", "agent"] as const) {
    expect(logSince(program, since).some(({ msg }) => msg.includes(`scripts/node adopt ${node}`))).toBe(true);
  }
  note(`refused, ${total} sandboxes kept`, (await refused()) ?? "");
}

/** The node served the strange database meanwhile: the true one takes over by the same command what has changed. */
async function backByAdoption({ running, paused }: Kept): Promise<void> {
  await database.putBack();
  await expect.poll(refused, { timeout: 90_000 }).toMatch("scripts/node adopt");
  note("the true database comes back, adopt", await scriptsNode("adopt"));
  await untilReady(platform);
  await expectAllThere([...running, ...paused], platform.apiKey);
  note("all are there in the true database");
}

/** A database with a project, a key and a running sandbox of its own, made while this node keeps nothing. */
async function otherPlatform(): Promise<{ readonly file: string; readonly key: string }> {
  const file = join(folder, "other.db");
  await database.use(undefined);
  await untilReady(platform);
  const key = await newKey("other platform");
  const { sandboxId } = await Sandbox.create({ apiKey: key, timeoutMs: 3_600_000 });
  await database.backUp(file);
  await Sandbox.kill(sandboxId, { apiKey: key });
  await database.putBack();
  await untilReady(platform);
  return { file, key };
}

/** A key of the project of this name in the database in place, which makes the project if there is none. */
async function newKey(project: string): Promise<string> {
  const projects = (await api(platform, "GET", "/admin/projects", asAdmin(platform))).json as Project[];
  const found =
    projects.find(({ name }) => name === project) ??
    ((await api(platform, "POST", "/admin/projects", { ...asAdmin(platform), body: { name: project } }))
      .json as Project);
  const path = `/admin/teams/${found.teamID}/api-keys`;
  const made = await api(platform, "POST", path, { ...asAdmin(platform), body: { name: randomUUID() } });
  return (made.json as { key: string }).key;
}

interface Project {
  readonly name: string;
  readonly teamID: string;
}

/** Why the node refuses the database in place; undefined: it serves it, or the orchestrator does not answer. */
async function refused(): Promise<string | undefined> {
  const ready = await api(platform, "GET", "/readyz?verbose", { key: null }).catch(() => undefined);
  return (ready?.json as { checks?: Record<string, string> } | undefined)?.checks?.["served database"];
}

const createOn = (key: string) => api(platform, "POST", "/sandboxes", { key, body: { templateID: "base" } });
const scriptsNode = (verb: string) => run(`${checkout}scripts/node`, [verb], { SVC_INSTANCE: platform.instance });

async function listedStates(): Promise<ReadonlyMap<string, string>> {
  const states = new Map<string, string>();
  const pages = Sandbox.list();
  while (pages.hasNext) for (const { sandboxId, state } of await pages.nextItems()) states.set(sandboxId, state);
  return states;
}

const allIds = async () => [...(await listedStates()).keys()];

function logSince(program: "orchestrator" | "agent", since: number): readonly { readonly msg: string }[] {
  const file = `${platform.paths.run.replace("/run/", "/var/log/")}/${program}.log`;
  const entries = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("{"));
  return entries
    .map((line) => JSON.parse(line) as { time: string | number; msg: string })
    .filter(({ time }) => new Date(time).getTime() >= since);
}

/** For the transcript: the seconds since the test's begin, what happened, and what a command or page said. */
function note(what: string, said = ""): void {
  const seconds = ((Date.now() - begun) / 1000).toFixed(1).padStart(6);
  lines.push(
    `${seconds} s  ${expect.getState().currentTestName ?? ""}: ${what}${said === "" ? "" : `\n          ${said.trim()}`}`,
  );
}
