/** What a mode makes of the bits that a file had: those that chmod makes of them with a umask of 0. */

import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isFileMode, modeAfter } from "../../../../shared/dockerfile/file-mode.ts";

const octal = (mode: number) => mode.toString(8).padStart(4, "0");

const MODES = [
  "755",
  "4711",
  "u+x",
  "+x",
  "-w",
  "=r",
  "a+rwx",
  "go-rwx",
  "u=rwX,go=rX",
  "+X",
  "g=u",
  "go=u-w",
  "o=g,u+s",
  "g+s",
  "u=,g=,o=",
  "+t",
  "ug+r-w",
];

test.each(MODES)("%s does to a file and to a directory what chmod does", (mode) => {
  const folder = mkdtempSync(join(tmpdir(), "svc-mode-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [file, directory] = [join(folder, "file"), join(folder, "directory")];
  writeFileSync(file, "");
  mkdirSync(directory);
  for (const before of [0o644, 0o755, 0o600, 0o711, 0o464]) {
    for (const path of [file, directory]) {
      chmodSync(path, before);
      execFileSync("sh", ["-c", 'umask 0 && exec chmod -- "$1" "$2"', "sh", mode, path]);
      expect([octal(before), octal(modeAfter(mode, before, path === directory))]).toEqual([
        octal(before),
        octal(statSync(path).mode & 0o7777),
      ]);
    }
  }
});

test("set-user-ID and the sticky bit go to whom they can belong", () => {
  expect(octal(modeAfter("u=rw", 0o4755, false))).toBe("0655");
  expect(octal(modeAfter("=rw", 0o6755, false))).toBe("0666");
  expect(octal(modeAfter("o+st", 0o644, false))).toBe("0644");
  expect(octal(modeAfter("u=rwx", 0o1777, true))).toBe("1777");
});

test.each(["", "u", "rwx", "u+q", "u+x,", ",u+x", "8", "75", "17777", "u x", "+x\n", `u${"+x".repeat(64)}`])(
  "%j is not a mode",
  (text) => expect(isFileMode(text)).toBe(false),
);
