/**
 * Reads the keys that seal secrets in this node's database from a separate file; makes the file if it is missing. The first
 * line is the current key. Further lines are earlier keys, which are removed once nothing is sealed under them.
 */

import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { AppError } from "../../../shared/http/errors.ts";
import { createSeal, type KeyedSeal } from "../../../shared/program/sealing/seal.ts";

const KEY_BYTES = 32;

export interface NodeSeal extends KeyedSeal {
  /** To be called once all values are under the current key, durably. Absent: there is no earlier key. */
  readonly forgetPrevious?: () => void;
}

/** The seal of the keys in the file, which only its owner may read. @throws {AppError} internal for a file that holds no key */
export function openNodeSeal(path: string): NodeSeal {
  const [current, ...previous] = sealKeys(path);
  const sealing = createSeal(current, path, previous);
  if (previous.length === 0) return sealing;
  return { ...sealing, forgetPrevious: () => replace(path, `${current}\n`) };
}

/** The keys in the file, the current one first. @throws {AppError} as `openNodeSeal` */
export function sealKeys(path: string): readonly [string, ...string[]] {
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
  const [current = "", ...previous] = readFileSync(path, "utf8").trim().split(/\s+/);
  if (current.length < KEY_BYTES) throw new AppError("internal", `${path} holds no key; move it away to have one made`);
  return [current, ...previous];
}

/** Replaces the file in one step that survives a power cut. */
function replace(path: string, text: string): void {
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, text, { mode: 0o600, flush: true });
  renameSync(draft, path);
  const directory = openSync(dirname(path), "r");
  fsyncSync(directory);
  closeSync(directory);
}
