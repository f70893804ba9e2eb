/** Which names and paths a mount of a volume may have. Pure. */

import { posix } from "node:path";

export interface WantedMount {
  readonly name: string;
  readonly path: string;
}

interface Faults {
  readonly ofName: string | undefined;
  readonly ofPath: string | undefined;
}

/** Longest path, and longest name in it, that Linux takes. */
const MAX_PATH = 4095;
const MAX_PART = 255;
/** A sandbox would not start or not be safe with something else there or below. */
const CLOSED = ["/proc", "/sys", "/dev", "/svc"];
/** Programs would miss what the image has there. A volume may be below. */
const NEEDED = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/run", "/var", "/boot"];
/** Docker's own mounts. */
const FILES = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];

/** For each entry what is wrong with it, in its order. */
export function faultsOf(mounts: readonly WantedMount[]): Faults[] {
  return mounts.map(({ name, path }, index) => ({
    ofName: isVolumeName(name) ? undefined : "must be 1 to 128 of a-z, A-Z, 0-9, _ and -",
    ofPath: faultOfPath(
      path,
      mounts.filter((_, other) => other !== index).map((other) => other.path),
      mounts.slice(0, index).some((other) => other.path === path),
    ),
  }));
}

function faultOfPath(path: string, others: readonly string[], isRepeated: boolean): string | undefined {
  if (!isCleanPath(path)) return `must be an absolute, clean path${hintOn(path)}`;
  // Docker's runtime and CRIU write paths into texts with separators of their own.
  if (!/^[\p{L}\p{N}\p{M}/._@+=~-]+$/u.test(path)) return "may have letters, digits and . _ @ + = ~ - only";
  if (CLOSED.some((one) => isAtOrBelow(path, one))) return "is reserved for the system";
  if (NEEDED.includes(path) || FILES.some((one) => isAtOrBelow(path, one))) return "would hide files of the system";
  if (isRepeated) return "is used twice";
  if (others.some((other) => other !== path && isCleanPath(other) && isAtOrBelow(path, other)))
    return "lies in another volume";
  return undefined;
}

/** The same place, written as it must be. */
function hintOn(path: string): string {
  const clean = posix.normalize(path).replace(/\/$/, "");
  return path.startsWith("/") && isCleanPath(clean) ? `: write '${clean.slice(0, 128)}'` : "";
}

function isAtOrBelow(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}/`);
}

function isVolumeName(name: string): boolean {
  return /^[a-zA-Z0-9_-]{1,128}$/.test(name);
}

function isCleanPath(path: string): boolean {
  const parts = path.split("/").slice(1);
  const isShort = Buffer.byteLength(path) <= MAX_PATH && parts.every((part) => Buffer.byteLength(part) <= MAX_PART);
  return /^\/[^\0]*$/.test(path) && isShort && parts.every((part) => !["", ".", ".."].includes(part));
}
