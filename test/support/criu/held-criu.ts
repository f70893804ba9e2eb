/** A CRIU that stops itself at a moment of a dump, for an agent that `agent.ts` beside this file starts. */

import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { until } from "../runner/until.ts";

const run = promisify(execFile);
const INSTALLED = "/opt/svc/bin/criu";
/** The directory in which a confined CRIU sees its own files. */
const CRIU_HOME = "/opt/svc/criu";
const LIMIT_MS = 60_000;

/** The moments that hold.c knows. */
export type Moment = "seized" | "stopped process seized" | "pages" | "named";

export interface HeldCriu {
  /** The directory for SVC_TEST_PROGRAMS. */
  readonly programs: string;
  /** Makes the next dumps stop at this moment; without a moment they do not stop. */
  holdAt(moment?: Moment): Promise<void>;
  /** Resolves to CRIU's process id when CRIU has stopped. */
  held(): Promise<number>;
  remove(): Promise<void>;
}

export async function heldCriu(): Promise<HeldCriu> {
  const programs = await mkdtemp(join(tmpdir(), "svc-held-"));
  const library = join(CRIU_HOME, `test-${basename(programs)}.so`);
  await run("cc", ["-Os", "-shared", "-fPIC", "-Wall", "-o", library, join(import.meta.dirname, "hold.c")]);
  const installed = await readFile(INSTALLED, "utf8");
  const preload = /\/opt\/svc\/criu\/preload-\w+\.so/g;
  if (!preload.test(installed)) throw new Error(`${INSTALLED} loads nothing of ours`);
  return {
    programs,
    async holdAt(moment) {
      // CRIU's own preload moves a stopped process in its ptrace. For that moment the test's library comes after it, for
      // others before.
      const libraries = (own: string) =>
        moment === "stopped process seized" ? `${own}:${library}` : `${library}:${own}`;
      const lines = installed.replaceAll(preload, libraries).split("\n");
      const [first = "", ...rest] = lines;
      const text = [first, `export SVC_TEST_HOLD='${moment ?? ""}'`, ...rest].join("\n");
      await writeFile(join(programs, "criu"), text, { mode: 0o755 });
    },
    async held() {
      let found: number | undefined;
      const look = async () => (found = await stoppedWith(library)) !== undefined;
      await until(look, { what: "the stop of CRIU", timeoutMs: LIMIT_MS });
      return found ?? 0;
    },
    async remove() {
      await rm(library, { force: true });
      await rm(programs, { recursive: true, force: true });
    },
  };
}

async function stoppedWith(library: string): Promise<number | undefined> {
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    if (!/^State:\s+T/m.test(status)) continue;
    const maps = await readFile(`/proc/${pid}/maps`, "utf8").catch(() => "");
    if (maps.includes(library)) return Number(pid);
  }
  return undefined;
}
