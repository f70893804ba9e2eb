/** Limits that both sides of a proxy share. */

/** Largest head of a message, and largest trailers, in bytes. */
export const MAX_HEAD_BYTES = 64 * 1024;
