/** What a program may ask to put into the clipboard. */

import { expect, test } from "vitest";
import { wantedText } from "../../../../console/src/sandbox/shell/clipboard.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");

test.each([
  ["a text", `c;${base64("ls -l\nfür dich")}`, "ls -l\nfür dich"],
  ["no name of a clipboard", `;${base64("a")}`, "a"],
  ["controls that nobody sees", `c;${base64("a\x1b[2J\rb\x07\x9b1\u202Etxt\u200B\tc")}`, "a[2Jb1txt\tc"],
  ["ends of lines of another system", `c;${base64("a\r\nb")}`, "a\nb"],
])("a program that sends %s is asked about what a person can read", (_what, data, expected) => {
  expect(wantedText(data)).toBe(expected);
});

test.each([
  ["wants to read the clipboard", "c;?"],
  ["clears it", "c;"],
  ["sends no base64", "c;%%%"],
  ["sends no text", `c;${Buffer.from([0xff, 0xfe]).toString("base64")}`],
  ["sends only what nobody sees", `c;${base64("\x1b\x07")}`],
  ["sends more than anybody reads", `c;${base64("x".repeat(20_001))}`],
  ["sends very much", `c;${"A".repeat(1_000_000)}`],
])("nothing is asked of a program that %s", (_what, data) => {
  expect(wantedText(data)).toBeUndefined();
});
