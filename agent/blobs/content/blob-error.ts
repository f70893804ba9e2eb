/**
 * Why a blob could not be read or written, as a word by which a caller decides what comes next:
 *
 * - `unreachable`: nothing answers, or it answers that it cannot serve now; later it may
 * - `denied`: the store refuses the key, the secret or the right to write
 * - `full`: the store, or the disk that a download goes to, has no room
 * - `missing`: the store is there, the blob is not
 * - `damaged`: its content is not what its name says
 * - `unreadable`: sealed under a key, or packed in a way, that this node does not have
 * - `foreign`: the store belongs to another platform
 * - `changed`: the files were written to while they were read, or cannot be stored at all
 * - `late`: an upload took so long that what it counted on may have been collected as garbage
 */
export type BlobFault =
  | "unreachable"
  | "denied"
  | "full"
  | "missing"
  | "damaged"
  | "unreadable"
  | "foreign"
  | "changed"
  | "late";

export class BlobError extends Error {
  override readonly name = "BlobError";
  readonly fault: BlobFault;

  /** @param message names the store, the blob and the reason; it holds no secret */
  constructor(fault: BlobFault, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.fault = fault;
  }
}

export function isFault(reason: unknown, fault: BlobFault): reason is BlobError {
  return reason instanceof BlobError && reason.fault === fault;
}

/** The code of an error of the operating system, such as ENOSPC. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
