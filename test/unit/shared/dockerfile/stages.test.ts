/** A Dockerfile with several FROM. */

import { expect, test } from "vitest";
import { readDockerfile } from "../../../../shared/dockerfile/dockerfile.ts";

test("of several stages the last one is built, with those that it is from", () => {
  const text = [
    "ARG KIND=base",
    "FROM golang AS build",
    "RUN --mount=type=bind make",
    "FROM node AS Base",
    "ENV A=1",
    'ENTRYPOINT ["serve"]',
    'CMD ["--port"]',
    "FROM base AS test",
    "RUN test",
    "FROM $KIND",
    "RUN true",
  ].join("\n");
  const { from, steps: all, startCommand, notes } = readDockerfile(text);
  expect([from, startCommand]).toEqual(["node", "serve --port"]);
  expect(all.slice(2, -2)).toEqual([
    { type: "ENV", args: ["A", "1"] },
    { type: "RUN", args: ["true"] },
  ]);
  expect(notes).toEqual([
    "line 2: the stage build is left out, the last stage is not FROM it",
    "line 8: the stage test is left out, the last stage is not FROM it",
  ]);
  expect(readDockerfile("FROM --platform=linux/arm64 a\nFROM b").notes).toEqual([
    "line 1: the stage without a name is left out, the last stage is not FROM it",
  ]);
  expect(readDockerfile("FROM a AS a\nRUN b\nFROM a").from).toBe("a");
  expect(readDockerfile(`${text}\nENTRYPOINT ["other"]`).startCommand).toBe("other");
  expect(readDockerfile('FROM a\nCMD ["x"]\nENTRYPOINT ["y"]').startCommand).toBe("y x");
});
