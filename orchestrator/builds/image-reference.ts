/** Reads `fromImage` of a build. Pure. */

import type { BuildBody } from "../../shared/agent-api/build-shapes.ts";
import { defined } from "../../shared/defined.ts";
import { AppError } from "../../shared/http/errors.ts";

const UPLOADED = "oci-archive:";
const ARCHIVE = /^([0-9a-f]{64})(?::(.+))?$/;

/**
 * Reads an image's name, or `oci-archive:HASH` with `:NAME` if the archive holds several images.
 * @throws {AppError} bad_request
 */
export function readImage(text: string): Exclude<BuildBody["from"], { is: "build" }> {
  if (!/^[\x21-\x7e]+$/.test(text)) throw new AppError("bad_request", "body field 'fromImage' is not an image name");
  if (!text.startsWith(UPLOADED)) return { is: "image", image: text };
  const [, filesHash, ref] = ARCHIVE.exec(text.slice(UPLOADED.length)) ?? [];
  if (filesHash === undefined) {
    const message = `body field 'fromImage': '${UPLOADED}' must be followed by the 64 hexadecimal digits it was uploaded by`;
    throw new AppError("bad_request", message);
  }
  return { is: "archive", filesHash, ...defined({ ref }) };
}
