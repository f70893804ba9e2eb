/** Runs the steps of a definition after the last cached layer, each in the build's container. */

import { randomUUID } from "node:crypto";
import { posix } from "node:path";
import type { Readable } from "node:stream";
import type { BuildStep } from "../../../shared/agent-api/build-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { BuildLog } from "../build-log.ts";
import type { PlannedStep } from "../images/layer-key.ts";
import { ADD_USER_SCRIPT } from "../images/provision-script.ts";
import { cleanArchive } from "./archive.ts";
import { ARCHIVE_LIMITS, type ArchiveLimits, createArchiveCheck } from "./archive-rules.ts";
import { type BuildContainer, loginShell, rootScript, type Script } from "./build-container.ts";
import { describeStep, type StepContext } from "./context.ts";
import { COPY_SCRIPT, splitSource } from "./copy-script.ts";
import { type ExitStatus, RpcError } from "./processes.ts";

export interface StepDeps {
  readonly log: BuildLog;
  /** Fetches the archive of a COPY step from the orchestrator. */
  readonly files: (hash: string, signal: AbortSignal) => Promise<Readable>;
  readonly signal: AbortSignal;
  readonly limits?: ArchiveLimits;
}

/** Whether a step changes the disk and therefore needs a layer. */
export function touchesDisk({ type }: BuildStep): boolean {
  return type !== "ENV";
}

/** As clients know it from Dockerfiles: `[builder 2/5]`. */
export function stepPrefix(step: BuildStep, count: number): string {
  return `[builder ${step.number}/${count}]`;
}

/** @throws the reason why the step failed, for the client */
export async function doStep(
  { step, before }: PlannedStep,
  buildContainer: BuildContainer,
  prefix: string,
  deps: StepDeps,
): Promise<void> {
  switch (step.type) {
    case "RUN": {
      const context = { ...before, user: step.user === undefined || step.user === "" ? before.user : step.user };
      await command(step.command, context, buildContainer, { ...deps, prefix, step: String(step.number) });
      return;
    }
    case "ENV":
      return;
    case "WORKDIR":
      await script(
        rootScript(WORKDIR_SCRIPT, step.path, before.user),
        `the directory '${step.path}' cannot be made`,
        buildContainer,
        deps,
      );
      return;
    case "USER":
      if (step.user === "root" || /^\d+$/.test(step.user)) return;
      await script(
        rootScript(ADD_USER_SCRIPT, step.user),
        `the user '${step.user}' cannot be made`,
        buildContainer,
        deps,
      );
      return;
    case "COPY":
      await copy(step, before, buildContainer, deps);
  }
}

/** Runs a command of the template's author and logs its output. @throws {AppError} with the wire contract's message */
async function command(
  text: string,
  context: StepContext,
  buildContainer: BuildContainer,
  { log, prefix, step, signal }: Pick<StepDeps, "log" | "signal"> & { readonly prefix: string; readonly step: string },
): Promise<void> {
  const output = log.output(prefix, step);
  const ended = await tried(text, () => buildContainer.run(loginShell(text, context), output.push, signal)).finally(
    output.end,
  );
  if (ended.exitCode === 0) return;
  const full = (await buildContainer.isFull())
    ? `; the build's disk of ${buildContainer.container.resources.diskSizeMB} MiB is full`
    : "";
  throw new AppError("bad_request", `failed to run command '${text}': ${ended.status}${full}`);
}

/** Reports a failure in the text that clients compare. */
export async function tried<T>(text: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (cause) {
    if (!(cause instanceof RpcError)) throw cause;
    throw new AppError(
      "bad_request",
      `failed to run command '${text}': command failed: ${cause.code}: ${cause.message}`,
      {
        cause,
      },
    );
  }
}

// Root creates it, because root may write everywhere; then the user owns it.
const WORKDIR_SCRIPT = `set -e
[ ! -d "$1" ] || exit 0
mkdir -p "$1"
ids=$(sed -n "s/^$2:[^:]*:\\([0-9]*\\):\\([0-9]*\\):.*/\\1:\\2/p" /etc/passwd | head -n 1)
[ -z "$ids" ] || chown "$ids" "$1"`;

/** Runs one of the platform's own scripts. @throws {AppError} with the last line it printed */
async function script(
  what: Script,
  otherwise: string,
  buildContainer: BuildContainer,
  { signal }: Pick<StepDeps, "signal">,
): Promise<void> {
  let text = "";
  const ended: ExitStatus = await buildContainer.run(
    what,
    (_stream, bytes) => (text = (text + bytes.toString("utf8")).slice(-2_000)),
    signal,
  );
  if (ended.exitCode === 0) return;
  const last = text.trim().split("\n").at(-1) ?? "";
  throw new AppError("bad_request", `${otherwise}: ${last === "" ? ended.status : last}`);
}

async function copy(
  step: Extract<BuildStep, { type: "COPY" }>,
  before: StepContext,
  buildContainer: BuildContainer,
  deps: StepDeps,
): Promise<void> {
  const { source, destination, filesHash, mode = "" } = step;
  const owner = step.user === undefined || step.user === "" ? before.user : (step.user.split(":")[0] ?? "");
  const failed = `failed to copy '${source}' to '${destination}'`;
  if (source.split("/").includes(".."))
    throw new AppError("bad_request", `${failed}: the source must not leave the template's directory ('..')`);
  const directory = `/tmp/.svc-${randomUUID()}`;
  const check = createArchiveCheck({
    limits: deps.limits ?? ARCHIVE_LIMITS,
    keepSetuid: owner === "root" || owner === "0",
  });
  const archive = cleanArchive(await deps.files(filesHash, deps.signal), check);
  try {
    await buildContainer.upload(`${directory}/archive.tar`, archive, deps.signal);
  } finally {
    archive.destroy();
  }
  const { from, wild } = splitSource(source);
  const target = posix.resolve(before.workdir, destination) + (destination.endsWith("/") ? "/" : "");
  await script(
    rootScript(COPY_SCRIPT, directory, from, wild ? "yes" : "no", target, owner, mode),
    failed,
    buildContainer,
    deps,
  );
}

/** Describes the step and its duration, for the log. */
export function stepTitle(step: BuildStep, prefix: string): string {
  return `${prefix} ${describeStep(step)}`;
}
