/** Builds a template from a Dockerfile, and shows logs of builds. */

import { createReadStream } from "node:fs";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { addAbortSignal, Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type Recipe, readDockerfile, type Step } from "../../../shared/dockerfile/dockerfile.ts";
import { DockerfileError } from "../../../shared/dockerfile/instruction-text.ts";
import { type Api, type Reply, refusal, unreached } from "../../api/client.ts";
import { filesOf, hashOf, readIgnored, writeArchive } from "../../build/archive.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure, usage } from "../../failure.ts";
import type { Options } from "../../options.ts";
import { createProgress } from "../../output/progress.ts";
import { patient } from "../../output/watch.ts";

const POLL_MS = 500;
const LOG_PAGE = 100;
/** How long a build is followed without an answer: a restart takes less, and a script must end where the platform is gone. */
const LONGEST_AWAY_MS = 600_000;

interface BuildId {
  readonly templateID: string;
  readonly buildID: string;
}

export const build: Action = async (context, { first, second }, options) => {
  const api = await context.api();
  const { folder, path, text } = await source(second === "" ? "." : second, options.file, context);
  const recipe = recipeOf(text, options, context);
  for (const note of recipe.notes) context.out.note(note);
  const [name = "", tag] = first.split(/:(.*)/s);
  const { templateID, buildID } = await api.call("POST /v3/templates", {
    body: {
      name,
      ...(tag === undefined ? {} : { tags: [tag] }),
      ...(options.cpu === undefined ? {} : { cpuCount: options.cpu }),
      ...(options.memorySize === undefined ? {} : { memoryMB: options.memorySize }),
    },
  });
  const steps = await withFiles({ context, api, folder, path, templateID }, recipe.steps, options);
  const startCmd = options.start ?? recipe.startCommand;
  await api.call("POST /v2/templates/{templateID}/builds/{buildID}", {
    params: { templateID, buildID },
    body: {
      ...(await origin(api, recipe)),
      steps,
      ...(startCmd === undefined ? {} : { startCmd }),
      ...(options.ready === undefined ? {} : { readyCmd: options.ready }),
      ...(options.force === true ? { force: true } : {}),
    },
  });
  const following = {
    api,
    signal: context.signal,
    asked: patient(context, { longestMs: LONGEST_AWAY_MS }),
    show: (line: string) => context.out.note(line),
  };
  await follow(following, { templateID, buildID }).catch((error: unknown) => {
    const isAway = error instanceof Failure && error.unreached !== undefined;
    if (context.signal.aborted || isAway)
      context.out.note(`the build goes on: svc template logs ${templateID} ${buildID} -f`);
    throw error;
  });
  context.out.note(`build/${buildID} is ready`);
  await context.out.line(templateID);
};

function recipeOf(text: string, { buildArg = {}, target }: Options, { env, out }: Context): Recipe {
  const given: Record<string, string> = {};
  for (const [name, own] of Object.entries(buildArg)) {
    const value = own ?? env[name];
    // As in Docker, the ARG has the value of the file then.
    if (value === undefined) out.note(`the build argument ${name} has no value, here or in the environment`);
    else given[name] = value;
  }
  try {
    return readDockerfile(text, given, target);
  } catch (error) {
    throw error instanceof DockerfileError ? usage(error.message) : error;
  }
}

interface Source {
  readonly folder: string;
  /** Of the Dockerfile. */
  readonly path: string;
  readonly text: string;
}

async function source(place: string, file: string | undefined, { streams, signal }: Context): Promise<Source> {
  const info = await stat(place).catch(() => undefined);
  if (info === undefined) throw new Failure(`${place} is not there`, { exitCode: EXIT.notFound });
  const folder = info.isDirectory() ? place : dirname(place);
  // What the folder's own Dockerfile leaves out is left out then, too.
  if (file === "-")
    return { folder, path: join(folder, "Dockerfile"), text: await textOf(addAbortSignal(signal, streams.stdin)) };
  const path = file ?? (info.isDirectory() ? await dockerfileIn(place) : place);
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw usage(`cannot read ${path}: ${(cause as Error).message}`, "name the Dockerfile with --file");
  });
  return { folder, path, text };
}

/** As in Docker, one in small letters counts where there is no other. */
async function dockerfileIn(folder: string): Promise<string> {
  const names = await readdir(folder).catch((): string[] => []);
  const name = ["Dockerfile", "dockerfile"].find((one) => names.includes(one));
  const others = names
    .filter((one) => /(^|\.)(docker|container)file(\.(?!dockerignore$)[^.]+)?$/i.test(one))
    .toSorted();
  if (name === undefined && others.length > 0)
    throw usage(
      `${folder} has no Dockerfile`,
      `name it with --file: ${others
        .slice(0, 5)
        .map((one) => join(folder, one))
        .join(", ")}`,
    );
  return join(folder, name ?? "Dockerfile");
}

/** `FROM` names a template where there is one of that name, otherwise an image. */
async function origin(api: Api, { from }: Recipe): Promise<{ fromTemplate: string } | { fromImage: string }> {
  if (!/^[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)?(:[A-Za-z0-9._-]+)?$/.test(from)) return { fromImage: from };
  const isTemplate = await api.call("GET /templates/aliases/{alias}", { params: { alias: from } }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Failure && (error.exitCode === EXIT.notFound || error.exitCode === EXIT.refused))
        return false;
      throw error;
    },
  );
  return isTemplate ? { fromTemplate: from } : { fromImage: from };
}

interface Place {
  readonly context: Context;
  readonly api: Api;
  readonly folder: string;
  /** Of the Dockerfile. */
  readonly path: string;
  readonly templateID: string;
}

type WireStep = { type: string; args: string[]; filesHash?: string; force?: boolean };

async function withFiles(place: Place, steps: readonly Step[], { force }: Options): Promise<WireStep[]> {
  const isIgnored = await readIgnored(place.folder, place.path);
  const done: WireStep[] = [];
  for (const { type, args, text } of steps) {
    const step = { type, args: [...args], ...(force === true ? { force: true } : {}) };
    const [from = "", to = "", ...more] = args;
    if (type !== "COPY") {
      done.push(step);
      continue;
    }
    if (text !== undefined) {
      done.push({ ...step, filesHash: await sendText(place, from, text) });
      continue;
    }
    const { files, isWild, needsDirectory } = await filesOf(place.folder, from, isIgnored);
    if (isWild && files.length === 0) {
      place.context.out.note(`COPY ${from}: no file matches, and nothing is copied`);
      continue;
    }
    const filesHash = await hashOf(place.folder, from, files);
    await send(place, { from, files, hash: filesHash });
    done.push({ ...step, args: [from, needsDirectory && !to.endsWith("/") ? `${to}/` : to, ...more], filesHash });
  }
  return done;
}

/** Sends a file that the Dockerfile itself has. */
async function sendText(place: Place, name: string, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "svc-build-"));
  try {
    await writeFile(join(folder, name), text);
    // Docker starts from this mode too, and `--chmod=u+x` changes a part of it. The user's umask must not decide.
    await chmod(join(folder, name), 0o644);
    const { files } = await filesOf(folder, name, () => false);
    const hash = await hashOf(folder, name, files);
    await send({ ...place, folder }, { from: name, files, hash });
    return hash;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Archive {
  readonly from: string;
  readonly files: Parameters<typeof hashOf>[2];
  readonly hash: string;
}

async function send({ context, api, folder, templateID }: Place, { from, files, hash }: Archive): Promise<void> {
  const { present, url, headers } = await api.call("GET /templates/{templateID}/files/{hash}", {
    params: { templateID, hash },
  });
  if (present || url === undefined) return;
  const scratch = await mkdtemp(join(tmpdir(), "svc-build-"));
  try {
    const archive = join(scratch, "files.tar.gz");
    await writeArchive(folder, files, { source: from, to: archive });
    const { size } = await stat(archive);
    const progress = createProgress(context, `sending ${from}`, size);
    const body = createReadStream(archive).on("data", (chunk) => progress.passed(chunk.length));
    const response = await fetch(url, {
      method: "PUT",
      headers: { ...headers, "content-length": String(size) },
      body: Readable.toWeb(body) as never,
      duplex: "half",
      redirect: "error",
      signal: context.signal,
    }).catch((cause: unknown) => {
      throw unreached(new URL(url).origin, cause, context.timeoutMs);
    });
    progress.end();
    const answer = await response.text();
    if (!response.ok) throw refusal(response.status, answer);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

type Status = Reply<"GET /templates/{templateID}/builds/{buildID}/status">;

interface Following {
  readonly api: Api;
  readonly signal: AbortSignal;
  /** Undefined: the platform did not answer this time. */
  readonly asked: <T>(ask: () => Promise<T>) => Promise<T | undefined>;
  readonly show: (line: string) => Promise<void> | void;
}

/** Shows the log until the build ends. @throws {Failure} the reason why it failed */
async function follow({ api, signal, asked, show }: Following, params: BuildId, isOnce = false): Promise<void> {
  let logsOffset = 0;
  for (;;) {
    const query = { logsOffset, limit: LOG_PAGE };
    const status: Status | undefined = await asked(() =>
      api.call("GET /templates/{templateID}/builds/{buildID}/status", { params, query }),
    );
    if (status === undefined) {
      await sleep(POLL_MS, undefined, { signal });
      continue;
    }
    for (const { message } of status.logEntries) await show(message.replace(/\n$/, ""));
    logsOffset += status.logEntries.length;
    if (status.logEntries.length >= LOG_PAGE) continue;
    if (status.status === "ready" || isOnce) return;
    if (status.status === "error") {
      const { message = "the build failed", step } = status.reason ?? {};
      throw new Failure(`build ${params.buildID}: ${message}${step === undefined ? "" : ` (step ${step})`}`);
    }
    await sleep(POLL_MS, undefined, { signal });
  }
}

export const logs: Action = async (context, { first: templateID, second }, options) => {
  const api = await context.api();
  let buildID = second;
  if (buildID === "") {
    const { builds } = await api.call("GET /templates/{templateID}", { params: { templateID }, query: { limit: 1 } });
    buildID = builds[0]?.buildID ?? "";
    if (buildID === "") throw new Failure(`template ${templateID} has no build`, { exitCode: EXIT.notFound });
  }
  const following = {
    api,
    signal: context.signal,
    // Without -f it is asked once.
    asked: options.follow === true ? patient(context, { isFirst: true }) : <T>(ask: () => Promise<T>) => ask(),
    show: (line: string) => context.out.line(line),
  };
  await follow(following, { templateID, buildID }, options.follow !== true);
};
