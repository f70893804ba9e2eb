/** The image of an uploaded archive, on the engine by a name of this build's own. */

import { arch } from "node:process";
import type { Readable } from "node:stream";
import type { BuildBody } from "../../../shared/agent-api/build-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { Containers, FoundImage } from "../../containers/containers.ts";
import { engineArchive } from "./oci-archive.ts";

/** Node's words for processors → those of images, where they differ. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64" };

/** An image that is on the engine, for a build. */
export interface Fetched {
  readonly found: FoundImage;
  /** Its name there. */
  readonly image: string;
  /** What people call it. */
  readonly said: string;
}

export interface BaseArchiveDeps {
  readonly containers: Pick<Containers, "image" | "load">;
  /** Uploaded to the orchestrator for the template of this build. */
  readonly archive: (hash: string, signal: AbortSignal) => Promise<Readable>;
  /** A line of the build's log. */
  readonly say: (message: string) => void;
}

/** `name`: the image's, from now on. @throws {AppError} bad_request */
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
  if (found === undefined) throw new AppError("internal", "the image was loaded and is gone");
  return { found, image: name, said };
}
