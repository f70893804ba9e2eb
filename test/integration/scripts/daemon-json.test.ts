/** The platform's entry in the settings of a Docker daemon that others use too. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";

const program = join(import.meta.dirname, "../../../scripts/host/engine/merge-daemon-json.mjs");

function settingsFile(text?: string) {
  const directory = mkdtempSync(join(tmpdir(), "svc-daemon-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "docker", "daemon.json");
  if (text !== undefined) {
    execFileSync("mkdir", ["-p", join(directory, "docker")]);
    writeFileSync(file, text, { mode: 0o600 });
  }
  const merge = (...parameters: string[]) =>
    execFileSync(process.execPath, [program, file, ...parameters], { encoding: "utf8", stdio: "pipe" }).trim();
  return { file, merge, read: (): unknown => JSON.parse(readFileSync(file, "utf8")) };
}

describe("the svc runtime in daemon.json", () => {
  test("is added beside what is there", () => {
    const { file, merge, read } = settingsFile('{"log-driver":"local","runtimes":{"kata":{"path":"/kata"}}}');
    expect(merge("add", "/svc-runc")).toBe("changed");
    expect(read()).toEqual({
      "log-driver": "local",
      runtimes: { kata: { path: "/kata" }, svc: { path: "/svc-runc" } },
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("changes nothing the second time", () => {
    const { merge } = settingsFile("{}");
    merge("add", "/svc-runc");
    expect(merge("add", "/svc-runc")).toBe("unchanged");
  });

  test("is taken out again, and the file is as it was", () => {
    const text = '{ "log-driver":"local",\n  "runtimes": {"kata":{"path":"/kata"}} }\n';
    const { file, merge } = settingsFile(text);
    merge("add", "/svc-runc");
    expect(merge("remove")).toBe("changed");
    merge("tidy");
    expect(readFileSync(file, "utf8")).toBe(text);
    expect(existsSync(`${file}.before-svc`)).toBe(false);
  });

  test("is removed without undoing changes that other programs made meanwhile", () => {
    const { file, merge, read } = settingsFile('{"log-driver":"local"}');
    merge("add", "/svc-runc");
    writeFileSync(file, JSON.stringify({ ...(read() as object), debug: true }));
    merge("remove");
    merge("tidy");
    expect(read()).toEqual({ "log-driver": "local", debug: true });
  });

  test("makes the file where there was none, and removes it", () => {
    const { file, merge, read } = settingsFile();
    merge("add", "/svc-runc");
    expect(read()).toEqual({ runtimes: { svc: { path: "/svc-runc" } } });
    merge("remove");
    expect(read()).toEqual({ runtimes: {} });
    merge("tidy");
    expect(existsSync(file)).toBe(false);
  });

  test("leaves a file alone that is not JSON", () => {
    const { file, merge } = settingsFile("{ broken");
    expect(() => merge("add", "/svc-runc")).toThrow();
    expect(readFileSync(file, "utf8")).toBe("{ broken");
  });
});
