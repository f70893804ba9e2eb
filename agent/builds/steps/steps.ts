/** Runs the steps of a definition after the last cached layer, each in the build's container. */

import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import type { BuildStep } from "../../../shared/agent-api/build-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { ADD_USER_SCRIPT } from "./add-user-script.ts";
import { cleanArchive } from "./archive.ts";
import { ARCHIVE_LIMITS, type ArchiveLimits, createArchiveCheck } from "./archive-rules.ts";
import { type BuildContainer, loginShell, rootScript, type Script, stepAct } from "./build-container.ts";
import type { BuildLog } from "./build-log.ts";
import { describeStep, ownerOf, type StepContext, splitUser } from "./context.ts";
import { REMOVE_SCRIPT, splitSource, targetOf } from "./copy-script.ts";
import { type ExitStatus, type Output, RpcError } from "./processes.ts";
import { takenUser } from "./taken-user.ts";

/** Of a command's output, what a failure is explained with. */
const LONGEST_LAST = 4_096;

export interface StepDeps {
  readonly log: BuildLog;
  /** Fetches the archive of a COPY step from the orchestrator. */
  readonly files: (hash: string, signal: AbortSignal) => Promise<Readable>;
  readonly signal: AbortSignal;
  readonly limits?: ArchiveLimits;
}

/** A step with its variables substituted, and the context in which it runs. */
export interface ResolvedStep {
  readonly step: BuildStep;
  readonly before: StepContext;
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
  { step, before }: ResolvedStep,
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
      await ensureDirectory({ workdir: step.path, user: before.user }, buildContainer, deps);
      return;
    case "USER": {
      const { name, group } = splitUser(step.user);
      const failed = `the user '${step.user}' cannot be used`;
      if (name !== "root" && !/^\d+$/.test(name))
        await script(rootScript(ADD_USER_SCRIPT, name), failed, buildContainer, deps);
      if (group !== undefined) await script(stepAct("home", { user: step.user }), failed, buildContainer, deps);
      return;
    }
    case "COPY":
      await copy(step, before, buildContainer, deps);
  }
}

/** The home of a user, as the image has it. @throws {AppError} bad_request */
export async function homeOf(user: string, buildContainer: BuildContainer, deps: Pick<StepDeps, "signal">) {
  return script(stepAct("home", { user }), `the home of the user '${user}' is not known`, buildContainer, deps);
}

/**
 * Makes the directory of a context that is missing, as its user's. Docker makes it at every start of a container; here it is
 * made again where a step has removed it.
 */
export async function ensureDirectory(
  { workdir, user }: Pick<StepContext, "workdir" | "user">,
  buildContainer: BuildContainer,
  deps: Pick<StepDeps, "signal">,
): Promise<"made" | "there"> {
  const failed = `the directory '${workdir}' cannot be made`;
  const said = await script(stepAct("directory", { path: workdir, user }), failed, buildContainer, deps);
  return said === "made" ? "made" : "there";
}

/** Runs a command of the template's author and logs its output. @throws {AppError} with the wire contract's message */
async function command(
  text: string,
  context: StepContext,
  buildContainer: BuildContainer,
  { log, prefix, step, signal }: Pick<StepDeps, "log" | "signal"> & { readonly prefix: string; readonly step: string },
): Promise<void> {
  const output = log.output(prefix, step);
  let last = "";
  const push: Output = (stream, bytes) => {
    output.push(stream, bytes);
    last = (last + bytes.toString("utf8")).slice(-LONGEST_LAST);
  };
  const run = () => buildContainer.runAlone(loginShell(text, context), push, signal);
  const ended = await tried(text, async () => {
    try {
      return await run();
    } catch (error) {
      // envd refuses a directory that is missing as an invalid argument: an earlier step may have removed it.
      if (!(error instanceof RpcError) || error.code !== "invalid_argument") throw error;
      if ((await ensureDirectory(context, buildContainer, { signal })) === "there") throw error;
      return run();
    }
  }).finally(output.end);
  if (ended.exitCode === 0) return;
  const full = (await buildContainer.isFull())
    ? `; the build's disk of ${buildContainer.container.resources.diskSizeMB} MiB is full`
    : "";
  const taken = await takenUser(last, buildContainer, signal);
  throw new AppError("bad_request", `failed to run command '${text}': ${ended.status}${full}${taken}`);
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

/** Runs one of the platform's own scripts; the end of its output. @throws {AppError} with the last line it printed */
async function script(
  what: Script,
  otherwise: string,
  buildContainer: BuildContainer,
  { signal }: Pick<StepDeps, "signal">,
): Promise<string> {
  let text = "";
  const ended: ExitStatus = await buildContainer.run(
    what,
    (_stream, bytes) => (text = (text + bytes.toString("utf8")).slice(-2_000)),
    signal,
  );
  if (ended.exitCode === 0) return text;
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
  const owner = ownerOf(step, before);
  const failed = `failed to copy '${source}' to '${destination}'`;
  if (source.split("/").includes(".."))
    throw new AppError("bad_request", `${failed}: the source must not leave the template's directory ('..')`);
  const directory = `/tmp/.svc-${randomUUID()}`;
  const { name: ownerName } = splitUser(owner);
  const check = createArchiveCheck({
    limits: deps.limits ?? ARCHIVE_LIMITS,
    keepSetuid: ownerName === "root" || ownerName === "0",
  });
  const archive = cleanArchive(await deps.files(filesHash, deps.signal), check);
  try {
    await buildContainer.upload(`${directory}/archive.tar`, archive, deps.signal);
  } finally {
    archive.destroy();
  }
  const { from, pattern } = splitSource(source);
  const target = targetOf(before.workdir, destination);
  const files = `${directory}/files`;
  const acts = [
    stepAct("unpack", { archive: `${directory}/archive.tar`, files }),
    stepAct("copy", { files, from, pattern, destination: target, owner, mode }),
    rootScript(REMOVE_SCRIPT, directory),
  ];
  for (const act of acts) await script(act, failed, buildContainer, deps);
}

/** Describes the step and its duration, for the log. */
export function stepTitle(step: BuildStep, prefix: string): string {
  return `${prefix} ${describeStep(step)}`;
}
