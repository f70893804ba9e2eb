/** Loads the image of an uploaded archive into the Docker daemon, under a name of this build alone. */

import { arch } from "node:process";
import type { Readable } from "node:stream";
import type { BuildBody } from "../../../shared/agent-api/build-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { Containers, FoundImage } from "../../containers/containers.ts";
import { engineArchive } from "./oci-archive.ts";

/** Processor names of Node.js that differ from those in images. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64" };

/** An image in the Docker daemon, for a build. */
export interface Fetched {
  readonly found: FoundImage;
  /** Name of the image in the Docker daemon. */
  readonly image: string;
  /** Name of the image in messages. */
  readonly said: string;
}

export interface BaseArchiveDeps {
  readonly containers: Pick<Containers, "image" | "load">;
  /** Uploaded to the orchestrator for the template of this build. */
  readonly archive: (hash: string, signal: AbortSignal) => Promise<Readable>;
  /** Writes a line of the build's log. */
  readonly say: (message: string) => void;
}

/** `name` becomes the image's name. @throws {AppError} bad_request */
export async function fetchArchive(
  { filesHash, ref }: Extract<BuildBody["from"], { is: "archive" }>,
  name: string,
  { containers, archive: open, say }: BaseArchiveDeps,
  signal: AbortSignal,
): Promise<Fetched> {
  const said = `the uploaded image ${ref ?? filesHash.slice(0, 12)}`;
  say(`FROM ${said}`);
  const source = await open(filesHash, signal);
  const archive = engineArchive(source, { name, ref, architecture: ARCHITECTURES[arch] ?? arch });
  try {
    await containers.load(archive, signal);
  } finally {
    archive.destroy();
  }
  const found = await containers.image(name);
  if (found === undefined)
    throw new AppError("internal", `image ${name} was loaded, but Docker does not list it: build the template again`);
  return { found, image: name, said };
}
