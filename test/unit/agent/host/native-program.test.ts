/** The agent runs from its sources too: then it compiles its C programs where their calls say that they are. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const AGENT = join(import.meta.dirname, "../../../../agent");

test("every C program that the agent names is in the folder that it names", () => {
  const files = readdirSync(AGENT, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const named = files.flatMap((name) => {
    const text = readFileSync(join(AGENT, name), "utf8");
    return [...text.matchAll(/"((?:[a-z-]+\/)+svc-[a-z-]+)"/g)].map(([, program]) => program ?? "");
  });
  expect(named.length).toBeGreaterThanOrEqual(5);
  expect(named.filter((program) => !existsSync(join(AGENT, `${program}.c`)))).toEqual([]);
});
