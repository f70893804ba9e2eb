/** An earlier revision of this repository in a directory of its own, and the scripts of it and of this checkout. */

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { pids } from "../platform/host-objects.ts";
import { checkout } from "../platform/platform.ts";

const execute = promisify(execFile);

/** A set-up may install packages, build an image and compile an add-on on a slow machine. */
export const UP_LIMIT_MS = 2_400_000;
/** Where npm finds packages is the user's; the rest of what `npm run` sets is about this checkout. */
const KEPT_OF_NPM = /^npm_config_(registry|cafile|proxy|https_proxy|noproxy|userconfig|cache)$/i;

export interface Earlier {
  readonly revision: string;
  /** Ends with a slash, as `checkout` does. */
  readonly directory: string;
  /** Whether a file below a folder of it has the words. */
  has(words: string, folder: string): Promise<boolean>;
  remove(): Promise<void>;
}

/** Throws while an agent runs on the machine: its sandboxes would get the runtime and the CRIU of the earlier version. */
export async function expectNoAgent(): Promise<void> {
  for (const pid of await pids()) {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    const instance = /\/opt\/svc\/app\/current-?([a-z0-9]*)\/agent\.js/.exec(command)?.[1];
    if (instance === undefined) continue;
    throw new Error(
      `a platform runs on this machine (process ${pid}): 'SVC_INSTANCE=${instance} ./scripts/down' stops it, with its sandboxes`,
    );
  }
}

/** Copies a revision out of this repository. Throws when this clone does not have it, as a shallow one. */
export async function earlier(revision: string): Promise<Earlier> {
  const place = await mkdtemp(join(tmpdir(), "svc-upgrade-"));
  const remove = () => rm(place, { recursive: true, force: true });
  try {
    // A checkout may belong to another user than root, who runs the tests.
    const config = join(place, "gitconfig");
    await writeFile(config, "[safe]\n\tdirectory = *\n[advice]\n\tdetachedHead = false\n");
    const git = async (...args: string[]) => {
      const env = { ...process.env, GIT_CONFIG_GLOBAL: config };
      return (await execute("git", args, { env, maxBuffer: 64 << 20 })).stdout.trim();
    };
    const named = `${revision}^{commit}`;
    const commit = await git("-C", checkout, "rev-parse", "--verify", "--quiet", named).catch(async () => {
      const shallow = (await git("-C", checkout, "rev-parse", "--is-shallow-repository")) === "true";
      const why = shallow ? " because it is shallow: 'git fetch --unshallow' brings the whole history" : "";
      throw new Error(
        `this clone of the repository has no revision ${revision}${why}; SVC_TEST_UPGRADE_FROM names another one`,
      );
    });
    const directory = join(place, "svc");
    await git("clone", "--quiet", "--no-checkout", checkout, directory);
    await git("-C", directory, "checkout", "--quiet", "--detach", commit);
    const has = (words: string, folder: string) =>
      git("-C", directory, "grep", "--quiet", "--fixed-strings", words, "--", folder).then(
        () => true,
        () => false,
      );
    return { revision, directory: `${directory}/`, has, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

interface Scripted {
  readonly directory: string;
  readonly instance: string;
}

/** Runs a script of a checkout for an instance, and resolves to what it wrote. Throws with the end of that when it fails. */
export async function script(
  { directory, instance }: Scripted,
  name: string,
  args: readonly string[] = [],
): Promise<string> {
  try {
    const { stdout } = await execute(`${directory}scripts/${name}`, [...args], {
      cwd: directory,
      env: environmentOf(instance),
      timeout: UP_LIMIT_MS,
      maxBuffer: 64 << 20,
    });
    return stdout;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    const end = `${stdout}${stderr}`.split("\n").slice(-40).join("\n");
    throw new Error(`'scripts/${name} ${args.join(" ")}' of ${directory} failed: ${end}`, { cause: error });
  }
}

/** As a user's shell has it: neither the Node of this checkout nor its settings for npm reach another one. */
function environmentOf(instance: string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      !/^(npm_|E2B_|VITEST|NODE_|INIT_CWD$)/i.test(name) || KEPT_OF_NPM.test(name) || name === "NODE_EXTRA_CA_CERTS",
  );
  const path = (process.env.PATH ?? "").split(":").filter((part) => !part.includes("node_modules"));
  return { ...Object.fromEntries(kept), PATH: path.join(":"), SVC_INSTANCE: instance };
}
