/** Images of builds on Docker. */

import type { Readable } from "node:stream";
import type Docker from "dockerode";
import { AppError } from "../../shared/http/errors.ts";
import type { Containers, FoundImage } from "./containers.ts";
import { orUndefined } from "./docker-errors.ts";
import { loadFailure } from "./images/load-failure.ts";
import { cleanedForLog, pullFailure } from "./images/pull-failure.ts";
import { createPullLog } from "./images/pull-log.ts";

type BuildImages = Pick<
  Containers,
  "image" | "pull" | "load" | "save" | "tag" | "untag" | "commitLayer" | "buildImages"
>;

/** Prefixes of the names of build images: a build's result, a cached layer, an image during its use. */
const REPOSITORIES = ["svc/build", "svc/layer", "svc/from"];

/** `unlimited` calls Docker without a time limit: pulls and commits take as long as the image is large. */
export function dockerBuilds(docker: Docker, unlimited: Docker, nodeId: string): BuildImages {
  const idOf = async (name: string) => (await orUndefined(docker.getImage(name).inspect(), 404))?.Id;
  return {
    async image(name) {
      const found = await orUndefined(docker.getImage(name).inspect(), 404);
      if (found === undefined) return undefined;
      const { Id, RepoTags, RepoDigests, Config, Size } = found;
      return {
        id: Id,
        names: [...(RepoTags ?? []), ...(RepoDigests ?? [])],
        env: Config.Env ?? [],
        labels: Config.Labels ?? {},
        volumes: Object.keys(Config.Volumes ?? {}),
        ...triggersOf(Config),
        bytes: Size,
      };
    },

    async pull(name, login, { onProgress, signal }) {
      const authconfig =
        login === undefined
          ? undefined
          : { username: login.username, password: login.password, serveraddress: login.registry };
      const log = createPullLog(onProgress);
      try {
        const stream = (await unlimited.pull(name, authconfig === undefined ? {} : { authconfig })) as Readable;
        const stop = () => stream.destroy();
        signal.addEventListener("abort", stop, { once: true });
        try {
          for await (const chunk of stream) log.push(String(chunk));
        } finally {
          signal.removeEventListener("abort", stop);
        }
      } catch (cause) {
        signal.throwIfAborted();
        if (cause instanceof AppError) throw cause;
        throw notPulled(name, said(cause));
      }
      signal.throwIfAborted();
      if (log.error !== undefined) throw notPulled(name, log.error);
    },

    async load(archive, signal) {
      const stop = new AbortController();
      // A partial archive must not look complete, so a fault of the archive aborts the request to Docker.
      archive.once("error", () => stop.abort());
      const log = createPullLog(() => undefined);
      try {
        const options = { abortSignal: AbortSignal.any([signal, stop.signal]) };
        const answer = (await unlimited.loadImage(archive, options)) as Readable;
        for await (const chunk of answer) log.push(String(chunk));
      } catch (cause) {
        signal.throwIfAborted();
        if (archive.errored !== null) throw archive.errored;
        throw notLoaded(said(cause));
      }
      if (log.error !== undefined) throw notLoaded(log.error);
    },

    async save(image, signal) {
      const archive = (await unlimited.getImage(image).get()) as Readable;
      const stop = () => archive.destroy(signal.reason as Error);
      signal.addEventListener("abort", stop, { once: true });
      archive.once("close", () => signal.removeEventListener("abort", stop));
      if (signal.aborted) stop();
      return archive;
    },

    async tag(image, name) {
      const [repo, tag] = split(name);
      await docker.getImage(image).tag({ repo, tag });
    },

    async untag(name) {
      // 409: a container uses it.
      const outcome = await orUndefined(docker.getImage(name).remove(), 404, 409);
      return outcome !== undefined || (await idOf(name)) === undefined;
    },

    async commitLayer(id, image) {
      const before = await idOf(image);
      const [repo, tag] = split(image);
      // An empty svc.snapshot overrides the label of a base that is a snapshot. The image must not hold envd's token.
      const changes = [`LABEL svc.node=${nodeId}`, "LABEL svc.snapshot=", "ENV SVC_ENVD_CONTROL="].join("\n");
      await unlimited.getContainer(id).commit({ repo, tag, pause: false, changes });
      // 409: layers or containers are based on it.
      if (before !== undefined) await orUndefined(docker.getImage(before).remove(), 404, 409);
    },

    async buildImages() {
      const found = await docker.listImages({ filters: { reference: REPOSITORIES } });
      return found
        .flatMap(({ RepoTags }) => RepoTags ?? [])
        .filter((name) => REPOSITORIES.some((repository) => name.startsWith(`${repository}:`)));
    },
  };
}

function split(name: string): [repo: string, tag: string] {
  const at = name.lastIndexOf(":");
  return [name.slice(0, at), name.slice(at + 1)];
}

function notPulled(name: string, engine: string): AppError {
  return new AppError("bad_request", pullFailure(name, engine), { details: { engine: cleanedForLog(engine) } });
}

function notLoaded(engine: string): AppError {
  return new AppError("bad_request", loadFailure(engine), { details: { engine: cleanedForLog(engine) } });
}

// Docker's own message, which never contains credentials.
function said(error: unknown): string {
  const { json } = (error ?? {}) as { json?: { message?: unknown } };
  if (typeof json?.message === "string") return json.message.slice(0, 500);
  return error instanceof Error ? error.message.slice(0, 500) : "Docker refused the request";
}

/** The library's types lack what builds on top of an image inherit. */
function triggersOf(config: object): Pick<FoundImage, "triggers" | "shell"> {
  const { OnBuild, Shell }: { readonly OnBuild?: string[] | null; readonly Shell?: string[] | null } = config;
  return { triggers: OnBuild ?? [], shell: Shell ?? [] };
}
