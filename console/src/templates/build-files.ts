/**
 * The files of a build's COPY steps, from the folder that somebody has chosen, as archives for the platform. Loaded when a
 * build is begun, because it needs the readers of Dockerfiles and the writer of archives.
 */

import { createTarPacker } from "modern-tar";
import type { buildApi } from "../../../shared/api/builds.ts";
import { type Recipe, readDockerfile } from "../../../shared/dockerfile/dockerfile.ts";
import { ignoredBy } from "../../../shared/dockerfile/ignored.ts";
import { untilAnswered } from "../base/again.ts";
import { API, act, get, type Reply, send } from "../base/client.ts";
import { Failed } from "../base/failed.ts";
import { filesUnder, ignoringOf, type Picked, parents } from "./copied.ts";

/** A file of the folder: its path from there on, with `/` between names. */
export interface Found {
  readonly path: string;
  readonly file: File;
}

interface Building {
  readonly name: string;
  readonly dockerfile: string;
  readonly files: readonly Found[];
  readonly cpuCount: number | undefined;
  readonly memoryMB: number | undefined;
  readonly startCmd: string;
  readonly readyCmd: string;
  readonly progress: (text: string) => void;
}

interface Step {
  readonly type: string;
  readonly args: readonly string[];
  readonly filesHash?: string;
}

export interface Begun {
  readonly templateID: string;
  readonly buildID: string;
  /** What the Dockerfile asks for and a sandbox does not have. */
  readonly notes: readonly string[];
}

/** Requests the build, sends what it copies, and starts it. @throws {Failed | Error} */
export async function beginBuild(building: Building): Promise<Begun> {
  lendBuffer();
  const recipe = readDockerfile(building.dockerfile);
  const [name = "", tag] = building.name.split(/:(.*)/s);
  const { cpuCount, memoryMB } = building;
  const sources = await sourcesOf(recipe, building.files);
  const waiting = { lost: () => building.progress("the connection was lost, trying again …") };
  // A second request makes a second build, and one that is never started is removed by the platform.
  const { templateID, buildID } = await untilAnswered(
    () =>
      act<Reply<typeof buildApi.requestBuild>>("POST", "/v3/templates", {
        name,
        ...(tag === undefined ? {} : { tags: [tag] }),
        ...(cpuCount === undefined ? {} : { cpuCount }),
        ...(memoryMB === undefined ? {} : { memoryMB }),
      }),
    waiting,
  );
  const steps: Step[] = [];
  const notes = [...recipe.notes];
  for (const { type, args, text } of recipe.steps) {
    const [from = "", to = "", ...more] = args;
    const picked = text === undefined ? sourceOf(type, sources.get(from)) : written(from, text);
    if (picked === undefined) steps.push({ type, args });
    else if (picked.files.length === 0) notes.push(`COPY ${from}: no file matches, and nothing is copied`);
    else {
      building.progress(`sending ${from} (${picked.files.length} files)`);
      steps.push({
        type,
        args: [from, picked.needsDirectory && !to.endsWith("/") ? `${to}/` : to, ...more],
        filesHash: await untilAnswered(() => upload(templateID, from, picked.files), waiting),
      });
    }
  }
  const startCmd = building.startCmd || recipe.startCommand;
  const from = await untilAnswered(() => origin(recipe), waiting);
  const start = () =>
    act("POST", `/v2/templates/${templateID}/builds/${buildID}`, {
      ...from,
      steps,
      ...(startCmd === undefined ? {} : { startCmd }),
      ...(building.readyCmd === "" ? {} : { readyCmd: building.readyCmd }),
    });
  await startOnce({ start, statusPath: `/templates/${templateID}/builds/${buildID}/status`, ...waiting });
  return { templateID, buildID, notes };
}

/** The answer to a start can be lost: then a build that waits no longer was started. */
async function startOnce(starting: {
  readonly start: () => Promise<void>;
  readonly statusPath: string;
  readonly lost: () => void;
}): Promise<void> {
  const { start, statusPath, lost } = starting;
  let isUncertain = false;
  await untilAnswered(
    async () => {
      if (isUncertain) {
        const { status } = await get<Reply<typeof buildApi.buildStatus>>(statusPath, { limit: 0 });
        if (status !== "waiting") return;
      }
      await start();
    },
    {
      lost() {
        isUncertain = true;
        lost();
      },
    },
  );
}

/** The library that reads Dockerfiles asks Node for the bytes of the first character, to find a mark of UTF-8. */
function lendBuffer(): void {
  if ("Buffer" in globalThis) return;
  Object.assign(globalThis, { Buffer: { from: (text: string) => new TextEncoder().encode(text) } });
}

/** `FROM` names a template where there is one of that name, otherwise an image. */
async function origin({ from }: Recipe): Promise<{ fromTemplate: string } | { fromImage: string }> {
  if (!/^[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)?(:[A-Za-z0-9._-]+)?$/.test(from)) return { fromImage: from };
  try {
    await get(`/templates/aliases/${encodeURIComponent(from)}`);
    return { fromTemplate: from };
  } catch (error) {
    if (error instanceof Failed && (error.status === 404 || error.status === 403)) return { fromImage: from };
    throw error;
  }
}

function sourceOf(type: string, picked: Picked<Found> | undefined): Picked<Found> | undefined {
  return type === "COPY" ? picked : undefined;
}

/** A file that the Dockerfile itself has. */
function written(name: string, text: string): Picked<Found> {
  return { files: [{ path: name, file: new File([text], name) }], needsDirectory: false };
}

/** The files of each source, before anything is requested, so that a wrong Dockerfile leaves nothing behind. */
async function sourcesOf({ steps }: Recipe, files: readonly Found[]): Promise<Map<string, Picked<Found>>> {
  const ignoring = ignoringOf(files);
  const isIgnored = ignoredBy(ignoring === undefined ? "" : await ignoring.file.text());
  const copied = steps.flatMap(({ type, args: [from = ""], text }) =>
    type === "COPY" && text === undefined ? [from] : [],
  );
  return new Map(copied.map((source) => [source, filesUnder(files, source, isIgnored)]));
}

async function upload(templateID: string, source: string, files: readonly Found[]): Promise<string> {
  const hash = await hashOf(source, files);
  const path = `/templates/${templateID}/files/${hash}`;
  const { present, url } = await get<Reply<typeof buildApi.buildFiles>>(path);
  if (present || url === undefined) return hash;
  // The same route at the console's own address: this page may send to no other one.
  const { pathname, search } = new URL(url);
  await send("PUT", `${API}${pathname.slice(pathname.indexOf("/uploads/"))}${search}`, { body: await archive(files) });
  return hash;
}

/** The same files have the same hash, so that the platform is sent each once. */
async function hashOf(source: string, files: readonly Found[]): Promise<string> {
  // Browsers have no hash on plain HTTP, except for this machine. Files of an unknown hash are sent each time.
  const { subtle } = crypto as { readonly subtle?: SubtleCrypto };
  if (subtle === undefined) return hex(crypto.getRandomValues(new Uint8Array(32)));
  const lines = [source];
  for (const { path, file } of files)
    lines.push(JSON.stringify([path, file.size, hex(await subtle.digest("SHA-256", await file.arrayBuffer()))]));
  return hex(await subtle.digest("SHA-256", new TextEncoder().encode(lines.join("\n"))));
}

function hex(bytes: ArrayBuffer | Uint8Array): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function archive(files: readonly Found[]): Promise<Blob> {
  const { readable, controller } = createTarPacker();
  const packed = new Response(readable.pipeThrough(new CompressionStream("gzip"))).blob();
  // A file that cannot be read is a failure of the loop below, which says which one.
  packed.catch(() => undefined);
  // Browsers tell the times of files alone.
  const made = { mtime: new Date() };
  const folders = new Set(files.flatMap(({ path }) => parents(path)));
  for (const name of [...folders].toSorted())
    await controller.add({ ...made, name: `${name}/`, type: "directory", mode: 0o755, size: 0 }).close();
  for (const { path, file } of files) {
    const mode = (await isProgram(file)) ? 0o755 : 0o644;
    const mtime = new Date(file.lastModified);
    await file.stream().pipeTo(controller.add({ mtime, name: path, mode, size: file.size }));
  }
  controller.finalize();
  return packed;
}

/** Browsers tell no mode: scripts and binaries of Linux begin with these bytes. */
async function isProgram(file: File): Promise<boolean> {
  const [first, second, third, fourth] = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  return (
    (first === 0x23 && second === 0x21) || (first === 0x7f && second === 0x45 && third === 0x4c && fourth === 0x46)
  );
}
