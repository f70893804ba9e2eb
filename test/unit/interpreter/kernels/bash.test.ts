import { execFileSync } from "node:child_process";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Lines, Marks, markOf, type Part } from "../../../../interpreter/kernels/workers/bash/marks.ts";
import { changeScript } from "../../../../interpreter/kernels/workers/bash/shell.ts";

const NONCE = "n0nce";
const joined = (parts: readonly Part[]) => {
  const all: Part[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if ("text" in part && last !== undefined && "text" in last) all[all.length - 1] = { text: last.text + part.text };
    else all.push(part);
  }
  return all;
};

test("marks are found wherever the output is cut", () => {
  const mark = markOf(NONCE, "7", "130");
  const output = `one\u001etwo\n${mark}three\u001e${NONCE}four${markOf("other", "1", "1")}${mark}`;
  const whole = joined(new Marks(NONCE).feed(output));
  expect(whole).toEqual([
    { text: "one\u001etwo\n" },
    { done: "7", status: 130 },
    { text: `three\u001e${NONCE}four${markOf("other", "1", "1")}` },
    { done: "7", status: 130 },
  ]);
  fc.assert(
    fc.property(fc.array(fc.nat(output.length), { maxLength: 8 }), (cuts) => {
      const places = [0, ...cuts.toSorted((a, b) => a - b), output.length];
      const marks = new Marks(NONCE);
      const parts = places.slice(1).flatMap((end, index) => marks.feed(output.slice(places[index], end)));
      expect(joined(parts)).toEqual(whole);
    }),
  );
});

test("output comes line by line, a long line without an end at once", () => {
  const lines = new Lines();
  expect(lines.feed("a\r\nb\nc")).toEqual(["a\n", "b\n"]);
  expect(lines.feed("d\n\n")).toEqual(["cd\n", "\n"]);
  expect(lines.feed("x".repeat(70_000))).toEqual(["x".repeat(70_000)]);
  expect(lines.feed("rest")).toEqual([]);
  expect(lines.isWhole).toBe(false);
  expect([lines.flush(), lines.flush()]).toEqual([["rest"], []]);
  expect(lines.isWhole).toBe(true);
});

test("a change sets any value as it is, and no code comes out of it", () => {
  const value = `a'b"$(touch /tmp/x)\`c\`\\ \n é`;
  const script = changeScript({ set: { A: value, "B;C": "x" }, remove: ["D", "E F"], cwd: "/", reseed: true }, 5);
  const shown = execFileSync("bash", ["-c", `${script}\nprintf '%s|%s|%s' "$A" "\${D-gone}" "$PWD"`], {
    encoding: "utf8",
    env: { ...process.env, D: "1" },
  });
  expect(shown).toBe(`${value}|gone|/`);
});
