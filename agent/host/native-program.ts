/** Programs in C, for the little that Node cannot do. */

import { mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RunCommand } from "./command.ts";

/**
 * Where it is: beside the program that was built, or, as tests and people who work on it run this, made from its source
 * in the directory given.
 * @param source below the agent's folder, without `.c`
 */
export async function nativeProgram(run: RunCommand, source: string, workDir: string): Promise<string> {
  const here = fileURLToPath(import.meta.url);
  if (!here.endsWith(".ts")) return join(dirname(here), basename(source));
  const agent = join(dirname(here), "..");
  const program = join(workDir, basename(source));
  await mkdir(workDir, { recursive: true });
  await run("cc", ["-Os", "-o", program, join(agent, `${source}.c`)]);
  return program;
}
