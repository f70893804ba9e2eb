/** Files that commands of the machine make and read: their names, and what is said where they cannot be. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fileTime, knownFile, newFile } from "../../../cli/commands/machine/here.ts";
import { EXIT } from "../../../cli/failure.ts";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "svc-here-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  writeFileSync(join(path, "there"), "");
  return path;
}

test("the time in the name of an archive says that it is UTC", () => {
  expect(fileTime(Date.parse("2026-11-29T08:19:43.500Z"))).toBe("2026-11-29T081943Z");
});

test("a new file is refused where one is, and where no folder is", () => {
  const path = folder();
  expect(newFile(join(path, "new"))).toBe(join(path, "new"));
  expect(() => newFile(join(path, "there"))).toThrow(expect.objectContaining({ exitCode: EXIT.conflict }));
  expect(() => newFile(join(path, "no/new"))).toThrow(expect.objectContaining({ exitCode: EXIT.notFound }));
});

test("a file that is to be read and is not there is not found", () => {
  const path = folder();
  expect(knownFile(join(path, "there"))).toBe(join(path, "there"));
  expect(() => knownFile(join(path, "new"))).toThrow(expect.objectContaining({ exitCode: EXIT.notFound }));
});
