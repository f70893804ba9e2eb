/** A Dockerfile with several FROM. */

import { expect, test } from "vitest";
import { readDockerfile } from "../../../../shared/dockerfile/dockerfile.ts";

test("a stage that is named, or numbered from 0 on, is built in place of the last one", () => {
  const text =
    "FROM node AS base\nRUN a\nFROM base AS Dev\nRUN b\nUSER root\nWORKDIR /\nCMD serve\nFROM nginx\nCOPY --from=dev /a /b";
  for (const target of ["dev", "DEV", "1"]) {
    const { from, steps, startCommand, notes } = readDockerfile(text, {}, target);
    expect([from, startCommand]).toEqual(["node", "serve"]);
    expect(steps.slice(2, -2).map(({ args }) => args[0])).toEqual(["a", "b"]);
    expect(notes).toEqual([`line 8: the stage without a name is left out, ${target} is not FROM it`]);
  }
  expect(readDockerfile(text, {}, "0").steps.slice(2, -2)).toEqual([{ type: "RUN", args: ["a"] }]);
  expect(readDockerfile("FROM a AS 1\nFROM b AS x", {}, "1").from).toBe("a");
  expect(() => readDockerfile(text, {}, "prod")).toThrow("has no stage 'prod': its stages are base, Dev");
  expect(() => readDockerfile("RUN a", {}, "dev")).toThrow("the Dockerfile has no FROM");
  expect(() => readDockerfile("FROM a", {}, "1")).toThrow("has no stage '1': its stages have no names");
});

test("of several stages the last one is built, with those that it is from", () => {
  const text = [
    "ARG KIND=base",
    "FROM golang AS build",
    "RUN --mount=type=bind make",
    "FROM node AS Base",
    "ENV A=1",
    "USER app",
    "WORKDIR /srv",
    'ENTRYPOINT ["serve"]',
    'CMD ["--port"]',
    "FROM base AS test",
    "RUN test",
    "FROM $KIND",
    "RUN true",
  ].join("\n");
  const { from, steps: all, startCommand, notes } = readDockerfile(text);
  expect([from, startCommand]).toEqual(["node", "serve --port"]);
  expect(all.slice(2)).toEqual([
    { type: "ENV", args: ["A", "1"] },
    { type: "USER", args: ["app"] },
    { type: "WORKDIR", args: ["/srv"] },
    { type: "RUN", args: ["true"] },
  ]);
  expect(notes).toEqual([
    "line 2: the stage build is left out, the last stage is not FROM it",
    "line 10: the stage test is left out, the last stage is not FROM it",
  ]);
  expect(readDockerfile("FROM --platform=linux/arm64 a\nFROM b").notes).toEqual([
    "line 1: the stage without a name is left out, the last stage is not FROM it",
  ]);
  expect(readDockerfile("FROM a AS a\nRUN b\nFROM a").from).toBe("a");
  expect(readDockerfile(`${text}\nENTRYPOINT ["other"]`).startCommand).toBe("other");
  expect(readDockerfile('FROM a\nCMD ["x"]\nENTRYPOINT ["y"]').startCommand).toBe("y x");
});
