/** The manual pages of `svc`: one for each command, in a form that man(1) shows without a warning. */

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Command } from "../../../cli/definition.ts";
import { COMMANDS, GROUPS } from "../../../cli/definitions/all.ts";
import { manPages } from "../../../scripts/lib/programs/man-page.ts";

const pages = manPages({ commands: COMMANDS, groups: GROUPS, version: "1.2.3" });
/** The requests that the pages use. */
const REQUESTS = /^\.(TH "[^"]+" 1 "" "[^"]+" "[^"]+"|S[HS] "[^"]+"|TP|nf|fi)$/;
const ESCAPES = /\\(f[BIR]|[e\-&]|\((ti|ha|dq|aq|ga)|\[u[0-9A-F]{4,6}\])/g;
const hasGroff = spawnSync("groff", ["--version"]).status === 0;

/** What a reader of man(7) would stumble over. */
function mistakes(text: string): readonly string[] {
  const lines = text.trimEnd().split("\n");
  return lines.flatMap((line, index) => {
    if (line.trim() === "") return [`${index + 1}: an empty line`];
    if (line.startsWith(".") && !REQUESTS.test(line)) return [`${index + 1}: not a request: ${line}`];
    if (line === ".TP" && (lines[index + 2] ?? ".").startsWith(".")) return [`${index + 1}: a tag without text`];
    if (/[^ -~]/.test(line)) return [`${index + 1}: a character beyond ASCII: ${line}`];
    const left = line.replaceAll(ESCAPES, "");
    if (left.includes("\\")) return [`${index + 1}: an unknown escape: ${line}`];
    if (line.startsWith("'")) return [`${index + 1}: a line that begins with a quote`];
    const fonts = [...line.matchAll(/\\f([BIR])/g)].map(([, font]) => font);
    return fonts.length % 2 === 0 && fonts.every((font, at) => (font === "R") === (at % 2 === 1))
      ? []
      : [`${index + 1}: a font that is not ended: ${line}`];
  });
}

test("every command that help shows has a page, and svc(1) names each of them", () => {
  const shown = COMMANDS.filter(({ hidden }) => hidden !== true).map(({ name }) => name);
  expect(pages.map(({ file }) => file)).toEqual([
    "svc.1",
    ...shown.map((name) => `svc-${name.replaceAll(" ", "-")}.1`),
  ]);
  for (const name of shown) expect(pages[0]?.text).toContain(`\\fBsvc ${name.replaceAll("-", "\\-")}\\fR`);
});

test.each(pages.map(({ file, text }) => [file, text]))("%s is written in the format of man(7)", (_file, text) => {
  expect(mistakes(text)).toEqual([]);
});

test("a page has the arguments, options and the example of its command", () => {
  const page = pages.find(({ file }) => file === "svc-node-drain.1")?.text ?? "";
  for (const part of ["\\fI<node>\\fR", "\\-\\-deadline <duration>", "stay, kill", "svc node drain n1"])
    expect(page).toContain(part);
});

test("texts with dots, quotes, backslashes and backticks are text", () => {
  const command: Command = {
    name: "odd",
    about: ".hidden `svc -x` isn't \\fB…",
    options: [{ flags: "--a <b>", about: `.TH "x"` }],
    example: ".sh 'a' \"b\"",
    load: () => Promise.reject(new Error("not called")),
  };
  const text = manPages({ commands: [command], groups: [], version: "1" })[1]?.text ?? "";
  expect(mistakes(text)).toEqual([]);
  expect(text).toContain("svc\\-odd \\- \\&.hidden \\fBsvc \\-x\\fR isn\\(aqt \\efB\\[u2026]");
  expect(text).toContain("\n\\&.TH \\(dqx\\(dq\n");
});

test.runIf(hasGroff)(
  "groff formats every page without a warning, and shows what is in it (only with SVC_TEST tools: groff-base)",
  { timeout: 60_000 },
  () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-man-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const files = pages.map(({ file, text }) => {
      writeFileSync(join(folder, file), text);
      return join(folder, file);
    });
    const { status, stderr } = spawnSync("groff", ["-man", "-Tutf8", "-ww", "-z", ...files], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const shown = execFileSync("groff", ["-man", "-Tascii", "-P-c", "-P-b", "-P-u", join(folder, "svc-doctor.1")], {
      encoding: "utf8",
    });
    expect(shown).toMatch(/svc doctor \[options\]/);
    expect(shown).toMatch(/--fix\n? +mends what can be mended/);
  },
);
