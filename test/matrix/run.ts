/** Runs a program in a sandbox of a running platform, and stores and starts it in each way. */

import { Sandbox } from "e2b";
import { morePackages } from "../support/more-packages/more-packages.ts";
import { api, checkout, type Platform } from "../support/platform/platform.ts";
import { type Outcome, problemOf, type Row, type Seen, seenIn, type Way, waysOf } from "./judge.ts";
import { archiveOf } from "./packages.ts";
import { directoryOf, PRELUDE, type Program } from "./program.ts";

/** A busy machine is slow, and no row is about speed. */
const REQUEST_MS = 300_000;
const START_MS = 300_000;
const ASK_MS = 120_000;
const LIFE_MS = 3_600_000;

/** A sandbox with its program, and the last answer of that. */
interface Live {
  sandbox: Sandbox;
  seen: Seen;
  /** Snapshots of it, which end with it. */
  readonly snapshots: string[];
}

/** @param told gets each outcome at once */
export async function runProgram(
  platform: Platform,
  program: Program,
  told: (way: Way, outcome: Outcome) => void,
): Promise<Row> {
  const outcomes: Partial<Record<Way, Outcome>> = {};
  let live: Live | undefined;
  for (const way of waysOf(program)) {
    const began = performance.now();
    let outcome: Outcome;
    try {
      if (way === "start") live = await begin(program);
      else {
        // What a failed way has left is not worth another one.
        live ??= await begin(program);
        await go(platform, program, way, live);
      }
      outcome = { is: "works", ms: Math.round(performance.now() - began) };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const isRefused = program.refused !== undefined && live !== undefined && (await goesOn(program, live));
      outcome = { is: isRefused ? "refused" : "fails", reason };
      if (!isRefused) {
        await end(live);
        live = undefined;
      }
    }
    outcomes[way] = outcome;
    told(way, outcome);
  }
  await end(live);
  return { name: program.name, outcomes };
}

async function begin(program: Program): Promise<Live> {
  const sandbox = await Sandbox.create(program.template, { timeoutMs: LIFE_MS, requestTimeoutMs: REQUEST_MS });
  try {
    const directory = `/home/user/${directoryOf(program)}`;
    await sandbox.files.makeDir(directory);
    const files = Object.entries(program.files).map(([name, data]) => ({ path: `${directory}/${name}`, data }));
    if (files.length > 0) await sandbox.files.write(files);
    const { packages, morePackages: more } = program;
    const archives = [
      ...(packages.length > 0 ? [await archiveOf(checkout, packages)] : []),
      ...(more.length > 0 ? [await archiveOf(await morePackages(), more)] : []),
    ];
    for (const archive of archives) {
      await sandbox.files.write(`${directory}/packages.tar.gz`, new Blob([new Uint8Array(archive)]));
      await script(sandbox, program, "tar -xzf packages.tar.gz && rm packages.tar.gz", START_MS);
    }
    await script(sandbox, program, program.start, START_MS);
    const first = await ask(sandbox, program);
    return { sandbox, seen: await goneOn(sandbox, program, "start", first), snapshots: [] };
  } catch (error) {
    await sandbox.kill();
    throw error;
  }
}

async function end(live: Live | undefined): Promise<void> {
  if (live === undefined) return;
  await live.sandbox.kill();
  for (const id of live.snapshots) await Sandbox.deleteSnapshot(id).catch(() => false);
}

async function go(platform: Platform, program: Program, way: Exclude<Way, "start">, live: Live): Promise<void> {
  const before = live.seen;
  const { sandboxId } = live.sandbox;
  if (way === "fork") {
    await inCopy(program, live);
  } else if (way === "rewind") {
    const { snapshotId } = await live.sandbox.createSnapshot({ requestTimeoutMs: REQUEST_MS });
    live.snapshots.push(snapshotId);
    await live.sandbox.files.write("/home/user/later", "later");
    await goneOn(live.sandbox, program, way, before);
    await call(platform, `/sandboxes/${sandboxId}/rewind`, { snapshotID: snapshotId });
    if (await live.sandbox.files.exists("/home/user/later")) throw new Error("a file that was written later is there");
  } else {
    if (way === "disk") await call(platform, `/sandboxes/${sandboxId}/pause`, { frozen: false });
    else await live.sandbox.pause({ requestTimeoutMs: REQUEST_MS });
    const timeout = LIFE_MS / 1000;
    if (way === "boot") await call(platform, `/sandboxes/${sandboxId}/connect`, { timeout, memory: false });
    live.sandbox = await Sandbox.connect(sandboxId, { timeoutMs: LIFE_MS, requestTimeoutMs: REQUEST_MS });
    if (way === "boot") await script(live.sandbox, program, program.start, START_MS);
  }
  live.seen = await goneOn(live.sandbox, program, way, before);
}

async function inCopy(program: Program, live: Live): Promise<void> {
  const [copy] = await live.sandbox.fork({ count: 1, timeoutMs: LIFE_MS, requestTimeoutMs: REQUEST_MS });
  if (!(copy instanceof Sandbox)) throw copy ?? new Error("the platform made no copy");
  try {
    await goneOn(copy, program, "fork", live.seen);
  } finally {
    await copy.kill();
  }
}

/** After a refusal the program has not noticed anything. */
async function goesOn(program: Program, live: Live): Promise<boolean> {
  try {
    live.seen = await goneOn(live.sandbox, program, "pause", live.seen);
    return true;
  } catch {
    return false;
  }
}

/** Asks, and again where the number grows by itself. @throws {Error} it is another program, or it has not gone on */
async function goneOn(sandbox: Sandbox, program: Program, way: Way, before: Seen): Promise<Seen> {
  const until = performance.now() + program.growsWithinMs;
  for (;;) {
    const after = await ask(sandbox, program);
    const problem = problemOf(program, way, before, after);
    if (problem === undefined) return after;
    const mayGrow = program.counts === "time" && before.me === after.me && performance.now() < until;
    if (!mayGrow) throw new Error(problem);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function ask(sandbox: Sandbox, program: Program): Promise<Seen> {
  return seenIn(await script(sandbox, program, program.ask, ASK_MS));
}

async function script(sandbox: Sandbox, program: Program, text: string, timeoutMs: number): Promise<string> {
  const cwd = `/home/user/${directoryOf(program)}`;
  try {
    return (await sandbox.commands.run(`${PRELUDE}${text}`, { cwd, timeoutMs })).stdout;
  } catch (error) {
    // What it said last, where it said something.
    const said = await sandbox.commands.run("tail -q -n 3 log 2>/dev/null || true", { cwd }).catch(() => undefined);
    const stderr = (error as { readonly stderr?: unknown }).stderr;
    const parts = [String(error), typeof stderr === "string" ? stderr : "", said?.stdout ?? ""];
    throw new Error(parts.map((part) => part.trim()).join("; "), { cause: error });
  }
}

async function call(platform: Platform, path: string, body: object): Promise<void> {
  const { status, text } = await api(platform, "POST", path, { body, timeoutMs: REQUEST_MS });
  if (status >= 300) throw new Error(`${path} answered ${status}: ${text}`);
}
