/** Programs in C, for the few things that Node cannot do. */

import { mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RunCommand } from "./command.ts";

/**
 * Path of the program: beside the built agent, or, when tests and developers run from the sources, compiled into the
 * given directory.
 * @param source below the agent's folder, without `.c`
 * @param parts what is compiled with it, of the same folder
 */
export async function nativeProgram(
  run: RunCommand,
  source: string,
  workDir: string,
  parts: readonly string[] = [],
): Promise<string> {
  const here = fileURLToPath(import.meta.url);
  if (!here.endsWith(".ts")) return join(dirname(here), basename(source));
  const folder = join(dirname(here), "..", dirname(source));
  const program = join(workDir, basename(source));
  await mkdir(workDir, { recursive: true });
  await run("cc", ["-Os", "-o", program, ...[basename(source), ...parts].map((name) => join(folder, `${name}.c`))]);
  return program;
}
