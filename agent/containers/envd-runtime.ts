/** The directory with envd and its private Node: which version new containers mount, and how they start it. */

import { readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import { type Static, Type } from "typebox";
import { AppError } from "../../shared/http/errors.ts";
import { check } from "../../shared/http/validate.ts";
import { RUNTIME_MOUNT } from "./options.ts";

export interface EnvdRuntime {
  /** A path without symbolic links: a container keeps its version when `current` moves on. */
  readonly directory: string;
  /** Arguments of the first process; paths are those inside the container. */
  readonly command: readonly string[];
}

const Launch = Type.Object({ args: Type.Array(Type.String(), { minItems: 1 }) });
const launch = check(Launch, "launch.json");

/** Without a directory: reads the link at each call. The file is read once per version. */
export function envdRuntimes(path: string): (directory?: string) => Promise<EnvdRuntime> {
  const known = new Map<string, EnvdRuntime>();
  return async (given) => {
    const directory = await realpath(given ?? path).catch((cause: unknown) => {
      throw new AppError("unavailable", "the envd runtime directory is missing", { cause });
    });
    const runtime = known.get(directory) ?? { directory, command: await readCommand(directory) };
    known.set(directory, runtime);
    return runtime;
  };
}

async function readCommand(directory: string): Promise<readonly string[]> {
  const file = join(directory, "envd", "launch.json");
  try {
    const { args }: Static<typeof Launch> = launch.parse(JSON.parse(await readFile(file, "utf8")));
    return [`${RUNTIME_MOUNT}/tini`, "--", ...args];
  } catch (cause) {
    throw new AppError("unavailable", "the envd runtime has no usable launch.json", { cause });
  }
}
