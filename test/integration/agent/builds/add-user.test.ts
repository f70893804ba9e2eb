/** The script that makes a user in an image, run on files of the test's own. */

import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ADD_USER_SCRIPT } from "../../../../agent/builds/steps/add-user-script.ts";

test.skipIf(process.getuid?.() !== 0)(
  "a user is added behind the last line of an image's files, also when that line has no end (skipped without root)",
  () => {
    const root = mkdtempSync(join(tmpdir(), "svc-add-user-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    mkdirSync(join(root, "etc"));
    writeFileSync(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh");
    writeFileSync(join(root, "etc/group"), "root:x:0:\nnode:x:1000:");
    const script = ADD_USER_SCRIPT.replaceAll(/\/(etc|home)\//g, `${root}/$1/`);
    for (const _ of ["first", "again"]) execFileSync("/bin/sh", ["-c", script, "svc", "app"]);
    const lines = (name: string) => readFileSync(join(root, "etc", name), "utf8").split("\n");
    expect(lines("passwd").slice(1)).toEqual([
      "node:x:1000:1000::/home/node:/bin/sh",
      `app:x:1001:1001::${root}/home/app:/bin/bash`,
      "",
    ]);
    expect(lines("group").slice(1)).toEqual(["node:x:1000:", "app:x:1001:", ""]);
  },
);

test.skipIf(process.getuid?.() !== 0)(
  "the home that a user of the image has keeps its owner and its files (skipped without root)",
  () => {
    const root = mkdtempSync(join(tmpdir(), "svc-add-user-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    mkdirSync(join(root, "etc"));
    const home = join(root, "sbin");
    mkdirSync(home);
    writeFileSync(join(home, "program"), "");
    const line = `daemon:x:1:1:daemon:${home}:/usr/sbin/nologin`;
    writeFileSync(join(root, "etc/passwd"), line);
    writeFileSync(join(root, "etc/group"), "daemon:x:1:\n");
    const script = ADD_USER_SCRIPT.replaceAll(/\/(etc|home)\//g, `${root}/$1/`);
    execFileSync("/bin/sh", ["-c", script, "svc", "daemon"]);
    expect(readdirSync(home)).toEqual(["program"]);
    expect([home, join(home, "program")].map((path) => lstatSync(path).uid)).toEqual([0, 0]);
    expect(readFileSync(join(root, "etc/passwd"), "utf8")).toBe(line);
  },
);
