/** The base of a build: an image that is prepared for sandboxes, or the image of another build. */

import type { BuildBody, BuildSettings } from "../../../shared/agent-api/build-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { within } from "../../../shared/program/deadline.ts";
import type { KeyedMutex } from "../../../shared/program/keyed-mutex.ts";
import type { Containers } from "../../containers/containers.ts";
import { type BuildContainer, rootScript, type Script } from "../steps/build-container.ts";
import type { BuildLog } from "../steps/build-log.ts";
import { contextOf, type StepContext } from "../steps/context.ts";
import { RpcError } from "../steps/processes.ts";
import { type BaseArchiveDeps, type Fetched, fetchArchive } from "./base-archive.ts";
import { type ImageName, isBaseName, matchesAny, parseImageName, starterOf } from "./image-name.ts";
import { baseKey } from "./layer-key.ts";
import type { Layers } from "./layers.ts";
import { leftOut } from "./left-out.ts";
import { IMAGE_LIMITS } from "./oci-archive.ts";
import { CHECK_SCRIPT, PACKAGES_SCRIPT, PROVISIONING, USER_SCRIPT, VOLUMES_SCRIPT } from "./provision-script.ts";
import type { Login } from "./registry-login.ts";

export const BASE_STEP = "base";
const PREFIX = "[base]";
/** Time limit of installing packages, so that an unreachable mirror does not use up the build's time. */
const PACKAGES_LIMIT_MS = 300_000;

export interface BaseDeps {
  readonly containers: Pick<Containers, "image" | "pull" | "load" | "tag" | "untag">;
  readonly layers: Layers;
  readonly login: Login;
  readonly archive: BaseArchiveDeps["archive"];
  readonly open: (image: string, signal: AbortSignal) => Promise<BuildContainer>;
  /** One build at a time uses each image name of a registry. */
  readonly mutex: KeyedMutex;
  readonly log: BuildLog;
  readonly nodeId: string;
  /** The node's own base image. */
  readonly baseImage: string;
  /** Patterns of local images that builds may use without a pull, and of registries. */
  readonly localImages: string;
  readonly registries: string;
}

export interface BuildBase {
  readonly image: string;
  /** Key under which the layers above are cached. */
  readonly id: string;
  readonly context: StepContext;
  readonly settings: BuildSettings | undefined;
}

interface BaseRequest {
  readonly buildId: string;
  readonly from: BuildBody["from"];
  readonly force: boolean;
}

export async function prepareBase(request: BaseRequest, deps: BaseDeps, signal: AbortSignal): Promise<BuildBase> {
  const { from, buildId, force } = request;
  const { containers, log, baseImage } = deps;
  const say = (message: string) => log.write("info", `${PREFIX} ${message}`, BASE_STEP);
  if (from.is === "build") {
    const found = await containers.image(from.build.image);
    if (found === undefined)
      throw new AppError(
        "template_not_found",
        `this node does not have the image of template ${from.build.templateId}: build that template again`,
      );
    say(`FROM template ${from.build.templateId}`);
    const { envs, user, workdir } = from.settings;
    return { image: from.build.image, id: found.id, context: { envs, user, workdir }, settings: from.settings };
  }
  const own = from.is === "image" ? ownImage(from.image, baseImage) : undefined;
  if (from.is === "image" && own !== undefined) {
    const found = await containers.image(own.image);
    if (found === undefined)
      throw new AppError(
        "template_not_found",
        `this node does not have ${own.what} ${own.image}: its operator makes it with ${own.made}`,
      );
    say(`FROM ${from.image}`);
    return { image: own.image, id: found.id, context: contextOf(found.env), settings: undefined };
  }
  const { found, image, said } = await (from.is === "image"
    ? fetchImage(from, buildId, deps, signal)
    : fetchArchive(from, pulledName(deps.nodeId, buildId), { ...deps, say }, signal));
  const context = contextOf(found.env);
  // Templates and tests may use the name `svc/base` as well.
  if (found.labels["svc.image"] === "base") return { image, id: found.id, context, settings: undefined };
  for (const line of leftOut(found)) log.write("warn", `${PREFIX} ${line}`, BASE_STEP);
  const key = baseKey(found.id, PROVISIONING);
  const cached = force ? undefined : await deps.layers.use(key);
  if (cached !== undefined) {
    log.write("info", `CACHED ${PREFIX} provisioned ${said}`, BASE_STEP);
    return { image: cached.image, id: (await containers.image(cached.image))?.id ?? key, context, settings: undefined };
  }
  const buildContainer = await opened(image, deps, signal);
  try {
    await provision(buildContainer, found.volumes, deps, signal);
    const layer = await deps.layers.keep(key, buildContainer);
    const id = (await containers.image(layer.image))?.id ?? key;
    return { image: layer.image, id, context, settings: undefined };
  } finally {
    await buildContainer.close();
  }
}

/** The image of the node that this name means; undefined: the name of an image in a registry. */
function ownImage(name: string, baseImage: string) {
  if (isBaseName(name)) return { image: baseImage, what: "the base image", made: "./scripts/up" };
  const starter = starterOf(name);
  if (starter === undefined) return undefined;
  return { image: starter.image, what: "the image", made: `./scripts/template ${starter.template}` };
}

type FromImage = Extract<BuildBody["from"], { is: "image" }>;

/**
 * A pulled image gets a name of this build alone: another build has to ask the registry again, which decides whether
 * that build may have it.
 */
function fetchImage(from: FromImage, buildId: string, deps: BaseDeps, signal: AbortSignal): Promise<Fetched> {
  const named = parseImageName(from.image);
  return deps.mutex(`image ${named.name}`, () => fetchNamed({ ...from, ...named, buildId }, deps, signal));
}

async function fetchNamed(
  { name, registry, access, buildId }: Pick<FromImage, "access"> & ImageName & { readonly buildId: string },
  { containers, login, log, nodeId, localImages, registries }: BaseDeps,
  signal: AbortSignal,
): Promise<Fetched> {
  signal.throwIfAborted();
  log.write("info", `${PREFIX} FROM ${name}`, BASE_STEP);
  const local = access === undefined && matchesAny(localImages, name) ? await containers.image(name) : undefined;
  // The daemon also finds images by id, and by the names of other builds.
  if (local?.names.includes(name) === true) return { found: local, image: name, said: name };
  if (!matchesAny(registries, registry))
    throw new AppError(
      "bad_request",
      `this node pulls no images from ${registry}: its operator lists the allowed registries in SVC_BUILD_REGISTRIES`,
    );
  const before = await containers.image(name);
  const opener = access === undefined ? undefined : await login(access, registry, signal);
  await containers.pull(name, opener, {
    signal,
    onProgress: (line) => log.write("info", `${PREFIX} ${line}`, BASE_STEP),
  });
  const pulled = await containers.image(name);
  if (pulled === undefined)
    throw new AppError("internal", `image ${name} was pulled, but Docker does not list it: build the template again`);
  const own = pulledName(nodeId, buildId);
  const tooLarge = pulled.bytes > IMAGE_LIMITS.bytes;
  if (!tooLarge) await containers.tag(pulled.id, own);
  if (before === undefined) await containers.untag(name);
  // Of an upload the size is checked while it is unpacked.
  if (tooLarge)
    throw new AppError(
      "bad_request",
      `image ${name} has ${pulled.bytes} bytes, and an image of a template has ${IMAGE_LIMITS.bytes} at most: use a smaller one`,
    );
  return { found: pulled, image: own, said: name };
}

/** Name of a pulled image; removed at the end of the build. */
export function pulledName(nodeId: string, buildId: string): string {
  return `svc/from:${nodeId}-${buildId}`;
}

async function opened(image: string, deps: BaseDeps, signal: AbortSignal): Promise<BuildContainer> {
  try {
    return await deps.open(image, signal);
  } catch (cause) {
    signal.throwIfAborted();
    if (!(cause instanceof AppError) || cause.code !== "sandbox_create_failed") throw cause;
    throw new AppError("bad_request", "no container of the image starts: is the image for another processor?", {
      cause,
    });
  }
}

async function provision(
  buildContainer: BuildContainer,
  volumes: readonly string[],
  deps: BaseDeps,
  signal: AbortSignal,
): Promise<void> {
  const { log } = deps;
  await part(rootScript(CHECK_SCRIPT), buildContainer, deps, signal);
  if (volumes.length > 0) await part(rootScript(VOLUMES_SCRIPT, ...volumes), buildContainer, deps, signal);
  await within(PACKAGES_LIMIT_MS, (limit) => addPackages(buildContainer, log, { limit, signal }));
  await part(rootScript(USER_SCRIPT), buildContainer, deps, signal);
  log.write("info", `${PREFIX} The image is ready for sandboxes`, BASE_STEP);
}

/** @throws only when the signal aborts, or the container fails */
async function addPackages(
  buildContainer: BuildContainer,
  log: BuildLog,
  { limit, signal }: { readonly limit: AbortSignal; readonly signal: AbortSignal },
): Promise<void> {
  const output = log.output(PREFIX, BASE_STEP);
  try {
    const either = AbortSignal.any([signal, limit]);
    const { exitCode } = await buildContainer.run(rootScript(PACKAGES_SCRIPT), output.push, either);
    output.end();
    // envd brings what commands, files and terminals need, so an image without packages still works.
    if (exitCode !== 0)
      log.write(
        "warn",
        `${PREFIX} Some programs could not be installed: ready helpers that use them will not work`,
        BASE_STEP,
      );
  } catch (error) {
    output.end();
    if (signal.aborted || !limit.aborted) throw error;
    log.write("warn", `${PREFIX} Installing the missing programs took too long and was stopped`, BASE_STEP);
  }
}

async function part(
  script: Script,
  buildContainer: BuildContainer,
  { log }: BaseDeps,
  signal: AbortSignal,
): Promise<void> {
  const output = log.output(PREFIX, BASE_STEP);
  let last = "";
  try {
    const { exitCode, status } = await buildContainer.run(
      script,
      (stream, bytes) => {
        output.push(stream, bytes);
        last = (last + bytes.toString("utf8")).slice(-1_000);
      },
      signal,
    );
    if (exitCode !== 0)
      throw new AppError("bad_request", `the image cannot be used: ${last.trim().split("\n").at(-1) || status}`);
  } catch (cause) {
    if (!(cause instanceof RpcError)) throw cause;
    if (cause.code === "not_found" || cause.code === "invalid_argument")
      throw new AppError("bad_request", "the image cannot be used: it has no shell (/bin/sh)", { cause });
    throw new AppError("bad_request", `the image cannot be used: ${cause.message}`, { cause });
  } finally {
    output.end();
  }
}
