/** A picture that a program of a sandbox has sent: what the page shows of it, if anything. Pure. */

/** Larger ones are not read: a screen of 4096 × 4096 with a photograph on it is smaller. */
export const MOST_PICTURE_BYTES = 32 * 1024 * 1024;
/** The browser takes four bytes of memory for each pixel; a file of a few bytes can describe very many of them. */
export const MOST_PIXELS = 4096 * 4096;

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
/** Every PNG begins with its signature, a length of 13, and `IHDR`; then come width and height. */
const HEADER = [0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52];

export interface Size {
  readonly width: number;
  readonly height: number;
}

/**
 * The size that a PNG says it has.
 * @throws {Error} it is none, or one that a page should not draw
 */
export function sizeOf(picture: Uint8Array): Size {
  const start = [...SIGNATURE, ...HEADER];
  if (picture.length < start.length + 8 || start.some((byte, at) => picture[at] !== byte))
    throw new Error("what the sandbox has sent is no picture of its screen");
  const view = new DataView(picture.buffer, picture.byteOffset);
  const [width, height] = [view.getUint32(start.length), view.getUint32(start.length + 4)];
  if (width === 0 || height === 0 || width * height > MOST_PIXELS)
    throw new Error(`the sandbox has sent a picture of ${width} × ${height} pixels, which is not drawn`);
  return { width, height };
}
