/** What `svc` shows: escaped text, tables, ages, JSON and YAML. */

import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { assert, asyncProperty, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import type { Options } from "../../../cli/options.ts";
import { escapeLine, escapeText } from "../../../cli/output/escape.ts";
import { createOutput, type Output, type View } from "../../../cli/output/output.ts";
import { age, bytes, duration, secondsOf, until } from "../../../cli/output/time.ts";

/** What moves a cursor, hides text or turns it round. */
const DANGEROUS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** What `show` writes to standard output. */
async function shown(show: (output: Output) => Promise<void>, isTTY = false, env = {}): Promise<string> {
  const stdout = Object.assign(new PassThrough(), { isTTY });
  const all = text(stdout);
  await show(createOutput({ stdout, stderr: new PassThrough() }, env));
  stdout.end();
  return all;
}

interface Thing {
  readonly id: string;
  readonly state: string;
}
const view: View<Thing> = {
  name: ({ id }) => `thing/${id}`,
  columns: [
    { title: "ID", of: ({ id }) => id },
    { title: "STATE", of: ({ state }) => state, state: true },
    { title: "MORE", of: () => "more", wide: true },
  ],
};
const things = [
  { id: "a", state: "running" },
  { id: "longer", state: "paused" },
];

describe("text of the API and of sandboxes", () => {
  test.each([
    ["\u001b[2J", "\\x1b[2J"],
    ["\u009b31m", "\\x9b31m"],
    ["a\u202eb", "a\\u202eb"],
    ["line\nnext\r\tend", "line\\nnext\\r\\tend"],
    ["\u0007\u007f", "\\x07\\x7f"],
    ["tag\u{e0041}", "tag\\u{e0041}"],
    ["ü 漢字 🎉", "ü 漢字 🎉"],
  ])("%j is shown as %s", (given, wanted) => {
    expect(escapeLine(given)).toBe(wanted);
  });

  test("never has a dangerous character once it is escaped, whatever it is", () => {
    assert(
      property(string({ unit: "binary" }), (given) => {
        expect(escapeLine(given)).not.toMatch(DANGEROUS);
        expect(escapeText(given).replaceAll(/[\n\t]/g, "")).not.toMatch(DANGEROUS);
      }),
    );
  });

  test("is the same text for who reads the JSON or the YAML, and has no dangerous character in them", async () => {
    await assert(
      asyncProperty(string({ unit: "grapheme-composite" }), string({ unit: "binary" }), async (plain, odd) => {
        const value = { plain, odd, nested: [odd] };
        const json = await shown(async (output) => void (await output.structured(value, { output: "json" })));
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)));
        const yaml = await shown(async (output) => void (await output.structured(value, { output: "yaml" })));
        expect(parseYaml(yaml)).toEqual(value);
        for (const form of [json, yaml]) expect(form.replaceAll("\n", "")).not.toMatch(DANGEROUS);
      }),
      { numRuns: 50 },
    );
  });
});

describe("a list", () => {
  const list = (options: Options, isTTY = false, env = {}) =>
    shown((output) => output.list(view, things, options), isTTY, env);

  test("is a table with columns three blanks apart", async () => {
    expect(await list({})).toBe("ID       STATE\na        running\nlonger   paused\n");
  });

  test("has more columns with -o wide, names with -o name, and no titles with --no-headers", async () => {
    expect(await list({ output: "wide" })).toContain("longer   paused    more\n");
    expect(await list({ output: "name" })).toBe("thing/a\nthing/longer\n");
    expect(await list({ headers: false })).toBe("a        running\nlonger   paused\n");
  });

  test("has colours on a terminal only, and none with NO_COLOR", async () => {
    const colour = "\u001b[32mrunning\u001b[0m";
    expect(await list({}, true)).toContain(colour);
    expect(await list({}, true, { NO_COLOR: "1" })).not.toContain("\u001b");
    expect(await list({}, false)).not.toContain("\u001b");
  });

  test("escapes what its cells hold, also on a terminal", async () => {
    const hostile = [{ id: "\u001b]0;title\u0007", state: "\u001b[31mred" }];
    const table = await shown((output) => output.list(view, hostile, {}), true);
    expect(table.replaceAll("\n", "")).not.toMatch(DANGEROUS);
  });

  test("that is empty shows nothing on standard output", async () => {
    expect(await shown((output) => output.list(view, [], {}))).toBe("");
    expect(await shown((output) => output.list(view, [], { output: "json" }))).toBe("[]\n");
  });
});

test("one thing is a line for each column", async () => {
  expect(await shown((output) => output.one(view, { id: "a", state: "running" }, {}))).toBe(
    "Id:      a\nState:   running\nMore:    more\n",
  );
});

test.each([
  ["90", 90],
  ["90s", 90],
  ["5m", 300],
  ["1h30m", 5400],
  ["2d", 172_800],
  ["", undefined],
  ["5 m", undefined],
  ["-1s", undefined],
  ["1.5h", undefined],
])("the duration %j is %s seconds", (given, seconds) => {
  expect(secondsOf(given)).toBe(seconds);
});

test.each([
  [0, "0s"],
  [119_000, "119s"],
  [192_000, "3m12s"],
  [3_600_000, "60m"],
  [5 * 3_600_000, "5h"],
  [72 * 3_600_000, "3d"],
])("an age of %i ms is shown as %s", (ms, wanted) => {
  expect(duration(ms)).toBe(wanted);
});

test("times that are not there, or have passed, are a dash", () => {
  const now = Date.parse("2026-01-01T00:01:00Z");
  expect(age("2026-01-01T00:00:00Z", now)).toBe("60s");
  expect(age(null, now)).toBe("-");
  expect(age("never", now)).toBe("-");
  expect(until("2026-01-01T00:03:00Z", now)).toBe("2m");
  expect(until("2026-01-01T00:00:00Z", now)).toBe("-");
});

test.each([
  [0, "0B"],
  [1023, "1023B"],
  [1536, "1.5KiB"],
  [512 * 2 ** 20, "512MiB"],
  [null, "-"],
])("%s bytes are shown as %s", (count, wanted) => {
  expect(bytes(count)).toBe(wanted);
});
