/** Texts that name the platform's scripts, where the Debian package has other names for them. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ofPackage, wordsOf } from "../../../cli/installed.ts";

test.each([
  ["run ./scripts/up, which names the way out", "run svc-platform up, which names the way out"],
  ["'scripts/service log orchestrator' tells more", "'svc-platform service log orchestrator' tells more"],
  [
    "an upgrade is `git pull && ./scripts/up` on each machine",
    "an upgrade is `apt install ./svc_*.deb` on each machine",
  ],
  ["run ./scripts/up and use ./scripts/svc", "run svc-platform up and use svc"],
  ["put it into .svc/config.env", "put it into /etc/default/svc-two"],
  // What is another's stays.
  ["/home/user/scripts/up", "/home/user/scripts/up"],
  ["./scripts/upload", "./scripts/upload"],
  ["scripts/systemd", "scripts/systemd"],
])("%j is %j of the package", (text, wanted) => {
  expect(ofPackage(text, "-two")).toBe(wanted);
});

test("in a checkout, and where the command is of none, texts stay as they are", () => {
  const checkout = mkdtempSync(join(tmpdir(), "svc-installed-"));
  onTestFinished(() => rmSync(checkout, { recursive: true, force: true }));
  const text = "run ./scripts/up; .svc/config.env";
  expect(wordsOf({})(text)).toBe(text);
  expect(wordsOf({ SVC_CHECKOUT: checkout })(text)).toBe(text);
  writeFileSync(join(checkout, ".package"), "1.0\n");
  expect(wordsOf({ SVC_CHECKOUT: checkout })(text)).toBe("run svc-platform up; /etc/default/svc");
});
