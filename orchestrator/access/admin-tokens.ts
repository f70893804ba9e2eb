/**
 * Operators' tokens: from a setting, from a file, or both. Each line of the file is a token, and may have the time at which it
 * ends behind a space: `TOKEN 2030-01-31T00:00:00Z`. A change of the file is in force at the next request.
 */

import { readFileSync, statSync } from "node:fs";
import { sameSecret } from "../../shared/ids.ts";
import type { Log } from "../../shared/program/log.ts";

export interface AdminTokens {
  has(token: string): boolean;
  /** Whether one of the valid tokens passes. */
  some(passes: (token: string) => boolean): boolean;
}

export interface AdminTokensDeps {
  readonly token: string | undefined;
  readonly file: string | undefined;
  readonly now: () => number;
  readonly log: Log;
}

interface Line {
  readonly token: string;
  /** Unix milliseconds. */
  readonly endsAt: number;
}

/** A shorter token can be guessed. */
const SHORTEST = 16;

/** @throws when the file cannot be read, or neither file nor setting has a token */
export function createAdminTokens({ token, file, now, log }: AdminTokensDeps): AdminTokens {
  const fixed = token === undefined ? [] : [{ token, endsAt: Number.POSITIVE_INFINITY }];
  const read = file === undefined ? () => [] : watched(file, log);
  if (fixed.length + read().length === 0) {
    throw new Error(
      file === undefined ? "SVC_ADMIN_TOKEN_FILE or SVC_ADMIN_TOKEN is required" : `${file} holds no admin token`,
    );
  }
  function some(passes: (token: string) => boolean): boolean {
    const at = now();
    // Asks about all, so that the time does not tell which one passed.
    return [...fixed, ...read()].filter((line) => line.endsAt > at && passes(line.token)).length > 0;
  }

  return { some, has: (given) => some((token) => sameSecret(given, token)) };
}

/** The lines of the file as it is now. While it cannot be read, those of the last time. */
function watched(file: string, log: Log): () => readonly Line[] {
  let version = versionOf(file);
  let lines = parse(readFileSync(file, "utf8"));
  return () => {
    try {
      const current = versionOf(file);
      if (current !== version) {
        lines = parse(readFileSync(file, "utf8"));
        version = current;
        log.info({ file, tokens: lines.length }, "read the admin tokens again");
      }
    } catch (error) {
      log.warn({ err: error, file }, "cannot read the admin tokens again; those from before stay valid");
    }
    return lines;
  };
}

function versionOf(file: string): string {
  const { ino, size, mtimeNs } = statSync(file, { bigint: true });
  return `${ino} ${size} ${mtimeNs}`;
}

function parse(text: string): Line[] {
  return text.split("\n").flatMap((line) => {
    const [token = "", end] = line.trim().split(/\s+/);
    if (token.startsWith("#") || token.length < SHORTEST) return [];
    const endsAt = end === undefined ? Number.POSITIVE_INFINITY : Date.parse(end);
    // A time that cannot be read is one that has passed.
    return Number.isNaN(endsAt) ? [] : [{ token, endsAt }];
  });
}
