/** Whether a file can be changed as text, and its bytes again after that: what was not changed stays byte for byte. Pure. */

import { type Image, imageOf, isDrawn } from "./image.ts";

/** A larger file is not opened. */
export const MOST_TEXT_BYTES = 1024 * 1024;

export type Content =
  | { readonly is: "text"; readonly text: string; readonly lineEnd: "\n" | "\r\n" }
  | { readonly is: "image"; readonly image: Image; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly is: "other"; readonly why: string };

export function contentOf(bytes: Uint8Array<ArrayBuffer>): Content {
  const image = imageOf(bytes);
  if (image !== undefined)
    return isDrawn(image)
      ? { is: "image", image, bytes }
      : other(`is a picture of ${image.width} × ${image.height} pixels, which is not drawn`);
  if (bytes.length > MOST_TEXT_BYTES) return other("is larger than 1 MiB");
  if (bytes.includes(0)) return other("is binary: it has zero bytes");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return other("is binary, or text in another encoding than UTF-8");
  }
  const plain = text.replaceAll("\r\n", "\n");
  if (plain === text && !text.includes("\r")) return { is: "text", text, lineEnd: "\n" };
  // A field of the page knows one end of a line: it would make others the same as soon as it is saved.
  if (plain.includes("\r") || plain.replaceAll("\n", "\r\n") !== text) return other("has lines with different ends");
  return { is: "text", text: plain, lineEnd: "\r\n" };
}

export function bytesOf(text: string, lineEnd: "\n" | "\r\n"): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(lineEnd === "\n" ? text : text.replaceAll("\n", lineEnd));
}

function other(why: string): Content {
  return { is: "other", why };
}
