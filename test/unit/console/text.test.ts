/** Which files the console's editor opens, and that what was not changed stays byte for byte. */

import { expect, test } from "vitest";
import { bytesOf, contentOf, MOST_TEXT_BYTES } from "../../../console/src/sandbox/files/text.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

test.each(["", "one\ntwo\n", "one\r\ntwo\r\n", "\ufeffwith a mark\n", "no end", "ü 漢 🙂\n"])(
  "%j is opened and comes back as it was",
  (text) => {
    const content = contentOf(bytes(text));
    if (content.is !== "text") throw new Error(content.is);
    expect(content.text).not.toContain("\r");
    expect([...bytesOf(content.text, content.lineEnd)]).toEqual([...bytes(text)]);
  },
);

test.each([
  ["zero bytes", Uint8Array.of(104, 0, 105), "is binary: it has zero bytes"],
  ["another encoding", Uint8Array.of(0xe4, 0x20), "is binary, or text in another encoding than UTF-8"],
  ["lines that end in two ways", bytes("a\r\nb\n"), "has lines with different ends"],
  ["lines that end as on old machines", bytes("a\rb\r"), "has lines with different ends"],
  ["more than a mebibyte", new Uint8Array(MOST_TEXT_BYTES + 1).fill(97), "is larger than 1 MiB"],
])("a file with %s is not opened as text", (_what, content, why) => {
  expect(contentOf(content)).toEqual({ is: "other", why });
});
