/** Runs one build from its base to its result. Removes everything but the result, also when the build fails. */

import { setTimeout as delay } from "node:timers/promises";
import type { BuildBody, BuildSettings, BuildStep } from "../../shared/agent-api/build-shapes.ts";
import type { Log } from "../../shared/program/log.ts";
import { Teardown } from "../../shared/program/teardown.ts";
import { ENVD_VERSION } from "../../shared/version.ts";
import type { Containers } from "../containers/containers.ts";
import type { BuildResult } from "../store/builds.ts";
import { FINAL_STEP, type FinishDeps, startAndWait, startOf } from "./finish.ts";
import { BASE_STEP, type BaseDeps, type BuildBase, prepareBase, pulledName } from "./images/base.ts";
import { cachedSteps, type PlannedStep, planSteps } from "./images/layer-key.ts";
import type { BuildContainer } from "./steps/build-container.ts";
import type { BuildLog } from "./steps/build-log.ts";
import { contextAfter, needsHome, resolveStep, type StepContext } from "./steps/context.ts";
import { doStep, ensureDirectory, homeOf, type StepDeps, stepPrefix, stepTitle, touchesDisk } from "./steps/steps.ts";

/** A container whose layer grew beyond this is replaced by a new one: each commit copies all that its layer holds. */
const CARRY_ON_BYTES = 16 * 1024 ** 2;
const UNTAG_LIMIT_MS = 20_000;
const UNTAG_POLL_MS = 100;

export interface BuildDeps
  extends Omit<BaseDeps, "log" | "containers" | "archive">,
    Pick<FinishDeps, "readyEveryMs" | "defaultWaitS"> {
  readonly containers: BaseDeps["containers"] & Pick<Containers, "untag">;
  readonly files: (templateId: string, hash: string, signal: AbortSignal) => ReturnType<StepDeps["files"]>;
  /** Takes a snapshot of the running build container, memory and disk, or answers `why` the node cannot take it. */
  readonly takeSnapshot: (buildContainer: BuildContainer, of: SnapshotSource) => Promise<SnapshotOutcome>;
  /** Removes a snapshot that `takeSnapshot` took. */
  readonly forget: (snapshotId: string) => Promise<void>;
  readonly log: Log;
  readonly now: () => number;
}

export interface SnapshotSource {
  readonly buildId: string;
  /** The project that owns the template. */
  readonly projectId: string | undefined;
}

export type SnapshotOutcome =
  | { readonly snapshot: NonNullable<BuildResult["snapshot"]> }
  /** Why there is no snapshot, for people. */
  | { readonly why: string };

export interface BuildRequest {
  readonly buildId: string;
  readonly body: BuildBody;
}

/** The part of the definition that runs: `base`, the number of a step, or `finalize`. */
export interface Progress {
  at: string;
}

/** A failed or aborted build leaves nothing behind when this rejects. */
export async function build(
  { buildId, body }: BuildRequest,
  { deps, log, progress }: { deps: BuildDeps; log: BuildLog; progress: Progress },
  signal: AbortSignal,
): Promise<BuildResult> {
  const { containers, nodeId } = deps;
  const teardown = new Teardown(deps.log);
  const open = async (image: string, until: AbortSignal) => {
    const buildContainer = await deps.open(image, until);
    teardown.add("container", () => buildContainer.close());
    return buildContainer;
  };
  const archive: BaseDeps["archive"] = (hash, until) => deps.files(body.templateId, hash, until);
  const made = { ...deps, log, open, archive };
  try {
    progress.at = BASE_STEP;
    const base = await prepareBase({ buildId, from: body.from, force: body.force }, made, signal);
    const { image, context } = await doSteps(body, base, { deps: made, log, progress }, signal);
    progress.at = FINAL_STEP;
    const result = await finish({ buildId, body, image, context, base }, { deps: made, log, teardown }, signal);
    signal.throwIfAborted();
    teardown.release();
    return result;
  } catch (error) {
    await teardown.run();
    throw signal.aborted ? signal.reason : error;
  } finally {
    await release(pulledName(nodeId, buildId), containers);
  }
}

/** Name of a build's result; sandboxes start from it. */
export function buildImage(buildId: string): string {
  return `svc/build:${buildId}`;
}

/**
 * Removes an image name as soon as no container uses it: containers are removed in the background. When a container
 * still uses the name after the time limit, garbage collection removes the name later.
 */
export async function release(
  name: string,
  containers: Pick<Containers, "untag">,
  limitMs = UNTAG_LIMIT_MS,
): Promise<void> {
  for (let waited = 0; waited < limitMs; waited += UNTAG_POLL_MS) {
    if (await containers.untag(name)) return;
    await delay(UNTAG_POLL_MS);
  }
}

interface Tools {
  readonly deps: Omit<BuildDeps, "log">;
  readonly log: BuildLog;
  readonly progress: Progress;
}

/** The image after all steps, and the context of the last. */
async function doSteps(
  { templateId, steps, force }: BuildBody,
  base: BuildBase,
  { deps, log, progress }: Tools,
  signal: AbortSignal,
): Promise<{ image: string; context: StepContext }> {
  const { layers } = deps;
  const definition = { templateId, base: base.id, context: base.context, steps, force };
  const plan = planSteps(definition, (number) => (progress.at = String(number)));
  const { count, cached } = await reuse(plan, deps);
  const state = {
    image: cached?.image ?? base.image,
    context: cached?.context ?? base.context,
    buildContainer: undefined as BuildContainer | undefined,
    dirty: false,
  };
  for (const { step, shown } of plan.slice(0, count))
    log.write("info", `CACHED ${stepTitle(shown, stepPrefix(step, plan.length))}`, String(step.number));
  const lastOnDisk = plan.findLastIndex(({ step }) => touchesDisk(step));
  const rest = plan.slice(count);
  const files = (hash: string, until: AbortSignal) => deps.files(templateId, hash, until);
  const opened = async () => (state.buildContainer ??= await deps.open(state.image, signal));
  const closed = async () => {
    await state.buildContainer?.close();
    state.buildContainer = undefined;
  };
  const changeDisk = async (step: BuildStep, before: StepContext, { key, prefix, last }: Place) => {
    const buildContainer = await opened();
    await doStep({ step, before }, buildContainer, prefix, { log, files, signal });
    state.dirty = true;
    // A change of directory or user alone needs no layer: the next layer includes it.
    if (step.type !== "RUN" && step.type !== "COPY" && !last) return;
    // Sandboxes start in the directory of the last step, which a step may have removed.
    if (last && step.type !== "WORKDIR") await ensureDirectory(state.context, buildContainer, { signal });
    const { image, grown } = await layers.keep(key, buildContainer, state.context);
    Object.assign(state, { image, dirty: false });
    if (grown > CARRY_ON_BYTES || last) await closed();
  };
  for (const [index, { step: given, shown, key }] of rest.entries()) {
    const prefix = stepPrefix(given, plan.length);
    const begun = deps.now();
    progress.at = String(given.number);
    signal.throwIfAborted();
    log.write("info", stepTitle(shown, prefix), progress.at);
    const before = state.context;
    const home = needsHome(given, before) ? await homeOf(before.user, await opened(), { signal }) : "";
    const step = resolveStep(given, before, home);
    state.context = contextAfter(step, before);
    if (touchesDisk(step)) await changeDisk(step, before, { key, prefix, last: count + index === lastOnDisk });
    else if (!state.dirty) layers.alias(key, state.image, state.context);
    log.write("debug", `${prefix} took ${((deps.now() - begun) / 1_000).toFixed(1)} s`, progress.at);
  }
  // One that only answered for the home of a user.
  await closed();
  return { image: state.image, context: state.context };
}

interface Place {
  readonly key: string;
  readonly prefix: string;
  /** No later step changes the disk. */
  readonly last: boolean;
}

/** The last cached step. A layer without a context cannot be continued. */
async function reuse(
  plan: readonly PlannedStep[],
  { layers }: Pick<BuildDeps, "layers">,
): Promise<{ count: number; cached: { image: string; context: StepContext } | undefined }> {
  for (;;) {
    const count = cachedSteps(plan, (key) => layers.known(key));
    const key = plan[count - 1]?.key;
    if (key === undefined) return { count: 0, cached: undefined };
    const layer = await layers.use(key);
    // `use` has deleted the row of a layer whose image is gone: try the layer below.
    if (layer?.context !== undefined) return { count, cached: { image: layer.image, context: layer.context } };
  }
}

interface Made {
  readonly buildId: string;
  readonly body: BuildBody;
  readonly image: string;
  readonly context: StepContext;
  readonly base: BuildBase;
}

async function finish(
  { buildId, body, image: layer, context, base }: Made,
  { deps, log, teardown }: { deps: Omit<BuildDeps, "log">; log: BuildLog; teardown: Teardown },
  signal: AbortSignal,
): Promise<BuildResult> {
  const { containers } = deps;
  const image = buildImage(buildId);
  await containers.tag(layer, image);
  teardown.add("image", () => release(image, containers));
  const settings: BuildSettings = { ...context, ...startOf(body, base.settings) };
  const diskBytes = (await containers.image(image))?.bytes ?? 0;
  const result = { image, settings, diskBytes, envdVersion: ENVD_VERSION };
  if (settings.startCmd === undefined && settings.readyCmd === undefined) return result;

  // A new container, so that no process of a step becomes part of the template.
  const buildContainer = await deps.open(image, signal);
  await startAndWait(settings, buildContainer, { ...deps, log }, signal);
  const of = { buildId, projectId: body.projectId };
  const taken = settings.startCmd === undefined ? undefined : await deps.takeSnapshot(buildContainer, of);
  if (taken !== undefined && "snapshot" in taken)
    teardown.add("snapshot", () => deps.forget(taken.snapshot.snapshotId));
  await buildContainer.close();
  if (taken === undefined) return result;
  if ("snapshot" in taken) return { ...result, snapshot: taken.snapshot };
  log.write(
    "warn",
    `[${FINAL_STEP}] Its memory is not kept (${taken.why}): the start command is run in each sandbox`,
    FINAL_STEP,
  );
  return result;
}
