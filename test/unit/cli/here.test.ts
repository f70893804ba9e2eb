/** Files that commands of the machine make and read: their names, and what is said where they cannot be. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { seen } from "../../../cli/commands/machine/doctor.ts";
import { fileTime, knownFile, newFile, sayInstance } from "../../../cli/commands/machine/here.ts";
import { EXIT, Failure } from "../../../cli/failure.ts";
import type { Output } from "../../../cli/output/output.ts";
import { readInstance } from "../../../machine/base/instance.ts";

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

test.each<[readonly string[], string, readonly string[]]>([
  [["svc"], "", []],
  [["svc", "svc-b", "svc-toolong", "svcx"], "", ["for the platform without a name; this machine also has b."]],
  [["svc", "svc-b"], "b", ["for the platform b; this machine also has one without a name."]],
])("on a machine with %j a change to '%s' names the platform where there are several", (folders, name, said) => {
  const root = mkdtempSync(join(tmpdir(), "svc-several-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const folder of folders) {
    mkdirSync(join(root, "etc", folder), { recursive: true });
    writeFileSync(join(root, "etc", folder, "orchestrator.env"), "");
  }
  const notes: string[] = [];
  const out = { note: (text: string) => void notes.push(text) } as Output;
  sayInstance({ out }, { instance: readInstance(name, root) });
  expect(notes).toEqual(said.map((words) => expect.stringContaining(words) as string));
});

test("a look of doctor that fails itself has an exit code of its own, and what it was told to say keeps its own", async () => {
  const { signal } = new AbortController();
  const crashed = seen({ signal }, () => Promise.reject(new TypeError("x is undefined")));
  await expect(crashed).rejects.toMatchObject({
    exitCode: EXIT.crashed,
    message: "doctor itself failed: x is undefined",
  });
  const refused = new Failure("for root", { exitCode: EXIT.refused });
  await expect(seen({ signal }, () => Promise.reject(refused))).rejects.toBe(refused);
  const interrupted = AbortSignal.abort(new Error("interrupted"));
  await expect(seen({ signal: interrupted }, () => Promise.reject(new TypeError("cut")))).rejects.toThrow(/^cut$/);
  expect(await seen({ signal }, () => Promise.resolve("found"))).toBe("found");
});
