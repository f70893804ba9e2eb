/**
 * Modules of Node that few sandboxes ever need, loaded when they are: at start they would cost a tenth of the time to
 * listening, and their memory for good.
 */

export function lateCrypto(): typeof import("node:crypto") {
  return process.getBuiltinModule("node:crypto");
}

export function lateChildProcess(): typeof import("node:child_process") {
  return process.getBuiltinModule("node:child_process");
}

export function lateZlib(): typeof import("node:zlib") {
  return process.getBuiltinModule("node:zlib");
}

/** A name nobody else has, in lower-case hexadecimal. */
export function randomName(bytes: number): string {
  return lateCrypto().randomBytes(bytes).toString("hex");
}
