/** Pictures among the files of a sandbox. The first bytes of a file decide what it is, and never its name. Pure. */

import { MOST_PIXELS } from "../screen/picture.ts";

export interface Image {
  readonly type: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  readonly width: number;
  readonly height: number;
}

/** A larger one is not opened. */
export const MOST_IMAGE_BYTES = 8 * 1024 * 1024;

/** Undefined: it is none that the page draws. SVG is text, and is shown as such. */
export function imageOf(bytes: Uint8Array): Image | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const { type, begins, size } of KINDS) {
    if (!begins(bytes)) continue;
    try {
      const found = size(view);
      return found === undefined ? undefined : { type, ...found };
    } catch {
      // The file ends before it says its size.
      return undefined;
    }
  }
  return undefined;
}

/** The browser takes memory for each pixel, and a small file can describe very many of them. */
export function isDrawn({ width, height }: Image): boolean {
  return width > 0 && height > 0 && width * height <= MOST_PIXELS;
}

type Size = Pick<Image, "width" | "height">;

interface Kind {
  readonly type: Image["type"];
  readonly begins: (bytes: Uint8Array) => boolean;
  /** @throws {RangeError} the file ends before */
  readonly size: (view: DataView) => Size | undefined;
}

const KINDS: readonly Kind[] = [
  {
    type: "image/png",
    begins: (bytes) => has(bytes, 0, "\x89PNG\r\n\x1a\n") && has(bytes, 12, "IHDR"),
    size: (view) => ({ width: view.getUint32(16), height: view.getUint32(20) }),
  },
  {
    type: "image/gif",
    begins: (bytes) => has(bytes, 0, "GIF87a") || has(bytes, 0, "GIF89a"),
    size: sizeOfGif,
  },
  { type: "image/jpeg", begins: (bytes) => has(bytes, 0, "\xff\xd8\xff"), size: sizeOfJpeg },
  { type: "image/webp", begins: (bytes) => has(bytes, 0, "RIFF") && has(bytes, 8, "WEBP"), size: sizeOfWebp },
];

function has(bytes: Uint8Array, at: number, text: string): boolean {
  return Array.from(text, (each) => each.charCodeAt(0)).every((code, index) => bytes[at + index] === code);
}

/** The larger of its screen and its first frame: browsers draw a first frame whole that is larger than the screen. */
function sizeOfGif(view: DataView): Size | undefined {
  // Behind the header is a table of colours, where a bit says so.
  const flags = view.getUint8(10);
  let at = 13 + (flags >= 0x80 ? 3 * 2 ** ((flags % 8) + 1) : 0);
  // Extensions: blocks, each with its length, up to one of length 0.
  while (view.getUint8(at) === 0x21) {
    at += 2;
    while (view.getUint8(at) > 0) at += view.getUint8(at) + 1;
    at++;
  }
  if (view.getUint8(at) !== 0x2c) return undefined;
  const two = (from: number) => view.getUint16(from, true);
  return {
    width: Math.max(two(6), two(at + 1) + two(at + 5)),
    height: Math.max(two(8), two(at + 3) + two(at + 7)),
  };
}

/** Segments that begin a frame with its size; between them are tables. */
const NO_FRAME = new Set([0xc4, 0xc8, 0xcc]);

function sizeOfJpeg(view: DataView): Size | undefined {
  let at = 2;
  while (view.getUint8(at) === 0xff) {
    const marker = view.getUint8(at + 1);
    // A marker may have more bytes of this value before it.
    if (marker === 0xff) {
      at++;
      continue;
    }
    if (marker >= 0xc0 && marker <= 0xcf && !NO_FRAME.has(marker))
      return { height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
    at += 2 + view.getUint16(at + 2);
  }
  return undefined;
}

function sizeOfWebp(view: DataView): Size | undefined {
  const chunk = String.fromCharCode(...[12, 13, 14, 15].map((at) => view.getUint8(at)));
  const three = (at: number) => view.getUint16(at, true) + view.getUint8(at + 2) * 0x1_0000;
  if (chunk === "VP8X") return { width: three(24) + 1, height: three(27) + 1 };
  if (chunk === "VP8 ") return { width: view.getUint16(26, true) % 0x4000, height: view.getUint16(28, true) % 0x4000 };
  if (chunk !== "VP8L") return undefined;
  const bits = view.getUint32(21, true);
  return { width: (bits % 0x4000) + 1, height: (Math.floor(bits / 0x4000) % 0x4000) + 1 };
}
