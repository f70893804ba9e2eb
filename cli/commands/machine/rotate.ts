/** `svc rotate`: replaces keys by the script of the checkout, which can be repeated and goes on where it was cut. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { lastWords } from "../../../machine/base/commands.ts";
import type { Machine } from "../../../machine/base/this-machine.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { Failure, usage } from "../../failure.ts";
import type { Options } from "../../options.ts";
import { hereAsRoot, sayInstance } from "./here.ts";

/** Both programs are restarted, and each key is replaced at once: such a run takes a minute on a busy machine. */
const LIMIT_MS = 1_800_000;

const BOTH =
  "The orchestrator and this machine's agent restart; sandboxes run on, open streams end and clients open them again.";
const NOTHING = "Nothing restarts.";

interface Key {
  readonly restarts: string;
  /** How the earlier one ends: by `--finish`, after `--overlap`, or by itself. */
  readonly ends: "finish" | "overlap" | "itself";
}

/** What can be replaced, by the words of scripts/rotate. */
export const KEYS: Readonly<Record<string, Key>> = {
  "admin-token": { restarts: NOTHING, ends: "overlap" },
  "api-key": { restarts: NOTHING, ends: "overlap" },
  "node-key": { restarts: BOTH, ends: "finish" },
  "metrics-token": { restarts: BOTH, ends: "finish" },
  "sandbox-seed": { restarts: BOTH, ends: "finish" },
  "encryption-key": { restarts: BOTH, ends: "finish" },
  "seal-key": { restarts: "This machine's agent restarts; sandboxes run on.", ends: "itself" },
  "identity-key": { restarts: NOTHING, ends: "itself" },
  "secrets-key": { restarts: NOTHING, ends: "itself" },
};

export interface Rotation {
  /** Arguments of scripts/rotate. */
  readonly words: readonly string[];
  readonly restarts: string;
  /** The next step for the operator; undefined: there is none. */
  readonly next: string | undefined;
}

/** Pure. @throws {Failure} for a key that is not known, or an option that it does not take */
export function rotationOf(key: string, { finish, overlap }: Pick<Options, "finish" | "overlap">): Rotation {
  const known = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
  if (known === undefined) throw usage(`there is no key '${key}'`, `one of: ${Object.keys(KEYS).join(", ")}`);
  const { ends, restarts } = known;
  if (finish === true && ends !== "finish") throw usage(`${key} takes no --finish: its earlier one ends by itself`);
  if (overlap !== undefined && ends !== "overlap") throw usage(`${key} takes no --overlap`);
  if (finish === true) return { words: [key, "--finish"], restarts, next: undefined };
  return {
    words: overlap === undefined ? [key] : [key, "--overlap", String(overlap)],
    restarts,
    next:
      ends === "finish"
        ? `The earlier one is valid until \`svc rotate keys ${key} --finish\`, which refuses while something uses it; \`svc rotate status\` says what does.`
        : undefined,
  };
}

export const keys: Action = (context, { first }, options) => rotate(context, rotationOf(first, options));

export const secrets: Action = (context) => rotate(context, rotationOf("secrets-key", {}));

export const status: Action = async (context) => {
  await context.out.line(...(await runScript(hereAsRoot(context), checkoutOf(context), ["status"], context.env)));
};

async function rotate(context: Context, { words, restarts, next }: Rotation): Promise<void> {
  const { env, out, signal } = context;
  const machine = hereAsRoot({ env });
  const checkout = checkoutOf(context);
  sayInstance(context, machine);
  out.note(`${restarts} A run that is cut is repeated with the same command.`);
  // Half of a rotation would leave a program stopped: the script goes on to its end, also without this command.
  signal.addEventListener("abort", () =>
    out.note("the rotation goes on to its end; Ctrl-C again does not wait for it"),
  );
  await out.line(...(await runScript(machine, checkout, words, env)));
  if (next !== undefined) out.note(next);
}

function checkoutOf({ env }: Pick<Context, "env">): string {
  const checkout = env["SVC_CHECKOUT"] ?? "";
  if (checkout !== "" && existsSync(join(checkout, "scripts/rotate"))) return checkout;
  throw new Failure("keys are replaced by the scripts of a checkout, and this command is of none", {
    wayOut: "run ./scripts/svc of the checkout that has set the platform up",
  });
}

/** @returns the lines that the script has printed */
export async function runScript(
  { run, instance }: Pick<Machine, "run" | "instance">,
  checkout: string,
  words: readonly string[],
  given: Context["env"] = {},
): Promise<readonly string[]> {
  // Whose the files of the checkout are: root by sudo is asked for by somebody.
  const invoker = Object.fromEntries(
    ["SUDO_UID", "SUDO_GID"].flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]]])),
  );
  const env = { ...invoker, HOME: "/root", ...(instance.name === "" ? {} : { SVC_INSTANCE: instance.name }) };
  const said = await run(join(checkout, "scripts/rotate"), words, { limitMs: LIMIT_MS, env });
  if (said.status === 0) return said.stdout.trimEnd().split("\n");
  const problem = said.stderr.trim() === "" ? lastWords(said) : said.stderr.trim();
  throw new Failure(`scripts/rotate ${words.join(" ")}: ${problem}`, {
    wayOut: "at each moment the earlier or the new one is valid: run the same command again",
  });
}
