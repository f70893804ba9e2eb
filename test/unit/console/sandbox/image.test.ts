/** Pictures among a sandbox's files: the first bytes of a file say what it is, and what is too large is not drawn. */

import { expect, test } from "vitest";
import { isOpened } from "../../../../console/src/sandbox/files/entries.ts";
import { imageOf, MOST_IMAGE_BYTES } from "../../../../console/src/sandbox/files/image.ts";
import { contentOf, MOST_TEXT_BYTES } from "../../../../console/src/sandbox/files/text.ts";

const bytes = (...parts: readonly (string | readonly number[])[]) =>
  Uint8Array.from(parts.flatMap((part) => (typeof part === "string" ? [...Buffer.from(part, "latin1")] : part)));

const png = (width: readonly number[]) =>
  bytes("\x89PNG\r\n\x1a\n", [0, 0, 0, 13], "IHDR", width, [0, 0, 0, 200], [8, 2, 0, 0, 0]);
const PNG = png([0, 0, 1, 64]);
const gif = (screen: readonly number[]) =>
  bytes(
    "GIF89a",
    screen,
    // A table of two colours, and an extension.
    [0x80, 0, 0, 0, 0, 0, 255, 255, 255],
    [0x21, 0xf9, 4, 0, 0, 0, 0, 0],
    [0x2c, 0, 0, 0, 0, 64, 1, 200, 0, 0],
  );
const GIF = gif([64, 1, 200, 0]);
const JPEG = bytes(
  [0xff, 0xd8],
  [0xff, 0xe0, 0, 4, 1, 2],
  // A table is no frame, and a marker may be filled up.
  [0xff, 0xc4, 0, 3, 9, 0xff],
  [0xff, 0xc2, 0, 11, 8, 0, 200, 1, 64, 1, 1],
);
const riff = (chunk: string, rest: readonly number[]) => bytes("RIFF", [0, 0, 0, 0], "WEBP", chunk, [0, 0, 0, 0], rest);
const WEBP_X = riff("VP8X", [0, 0, 0, 0, 63, 1, 0, 199, 0, 0]);
const WEBP_L = riff("VP8L", [0x2f, 0x3f, 0xc1, 0x31, 0]);
const WEBP = riff("VP8 ", [0, 0, 0, 0x9d, 0x01, 0x2a, 64, 1, 200, 0]);

test.each([
  ["image/png", PNG],
  ["image/gif", GIF],
  // Its first frame is larger than its screen, and is drawn whole.
  ["image/gif", gif([1, 0, 1, 0])],
  ["image/jpeg", JPEG],
  ["image/webp", WEBP_X],
  ["image/webp", WEBP_L],
  ["image/webp", WEBP],
] as const)("a picture of the type %s is shown as that, with its size", (type, content) => {
  expect(imageOf(content)).toEqual({ type, width: 320, height: 200 });
  expect(contentOf(content)).toMatchObject({ is: "image", image: { type, width: 320, height: 200 } });
});

test.each([
  ["a page that has a picture's name", bytes("<html><script>alert(1)</script></html>")],
  ["a drawing with scripts", bytes("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")],
  ["nothing", bytes()],
])("%s is no picture, and is shown as text", (_what, content) => {
  expect(imageOf(content)).toBeUndefined();
  expect(contentOf(content)).toMatchObject({ is: "text" });
});

test.each([
  ["PNG", PNG],
  ["GIF", GIF],
  ["JPEG", JPEG],
  ["WebP", WEBP],
])("a %s that ends anywhere before its size is no picture", (_what, content) => {
  for (let length = 0; length < content.length; length++) {
    const found = imageOf(content.slice(0, length));
    if (found !== undefined) expect(found).toMatchObject({ width: 320, height: 200 });
  }
  expect(imageOf(content.slice(0, 7))).toBeUndefined();
});

test("a picture that would take very much memory is not drawn", () => {
  expect(contentOf(png([0, 15, 66, 64]))).toEqual({
    is: "other",
    why: "is a picture of 1000000 × 200 pixels, which is not drawn",
  });
});

test("a file with a picture's name is opened up to 8 MiB, and any other up to 1 MiB", () => {
  const file = (name: string, size: number) => isOpened({ name, path: `/${name}`, size: String(size) });
  expect([file("a.PNG", MOST_IMAGE_BYTES), file("a.jpeg", MOST_IMAGE_BYTES + 1)]).toEqual([true, false]);
  expect([file("a.txt", MOST_TEXT_BYTES), file("a.txt", MOST_TEXT_BYTES + 1)]).toEqual([true, false]);
});
