/** The command that a text of a Dockerfile with an interpreter of its own becomes. */

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
