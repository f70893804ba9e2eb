/** Reads the key that seals secrets in this node's database from a separate file; makes the key if it is missing. */

import { randomBytes } from "node:crypto";
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { AppError } from "../../shared/http/errors.ts";

const KEY_BYTES = 32;

/** The key in the file, which only its owner may read. @throws {AppError} internal for a file that holds no key */
export function sealKey(path: string): string {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}.new`;
  try {
    // Written as a whole and never over an existing key, because sealed values would not open any more.
    writeFileSync(draft, `${randomBytes(KEY_BYTES).toString("base64url")}\n`, { mode: 0o600, flush: true });
    linkSync(draft, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  chmodSync(path, 0o600);
  const key = readFileSync(path, "utf8").trim();
  if (key.length < KEY_BYTES) throw new AppError("internal", `${path} holds no key; move it away to have one made`);
  return key;
}
