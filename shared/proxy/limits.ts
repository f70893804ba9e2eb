/** Bounds that both sides of a proxy share. */

/** Of the head of a message, and of its trailers. */
export const MAX_HEAD_BYTES = 64 * 1024;
