/** The commands that a Dockerfile's texts with an interpreter of their own, and those of its SHELL, become. */

import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { readDockerfile } from "../../../shared/dockerfile/dockerfile.ts";

test("a text of a Dockerfile is given to its interpreter as it is, and fails as it does", () => {
  const command = (program: string) =>
    readDockerfile(`FROM base\nRUN <<-EOF\n\t#!/usr/bin/env node\n\t${program}\n\tEOF`).steps[2]?.args[0] ?? "";
  const run = (program: string) => execFileSync("/bin/sh", ["-c", command(program)], { encoding: "utf8" });
  expect(run("console.log('$HOME', `${1 + 1}`, \"\\\\\")")).toBe("$HOME 2 \\\n");
  expect(() => run("process.exit(3)")).toThrow(expect.objectContaining({ status: 3 }));
});

test("a command of a Dockerfile runs in the shell that SHELL names, with its options", () => {
  const command = (text: string) =>
    readDockerfile(`FROM base\nSHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN ${text}`).steps[2]?.args[0] ?? "";
  const run = (text: string) => execFileSync("/bin/sh", ["-c", command(text)], { encoding: "utf8" });
  expect(run(`a=(1 "it's") && echo "\${a[1]}" '$HOME' | cat`)).toBe("it's $HOME\n");
  expect(() => run("false | true")).toThrow(expect.objectContaining({ status: 1 }));
});
