/** The machine that the command runs on: for root, and the instance that the environment names. Files that a command makes there. */

import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { readInstance } from "../../../machine/base/instance.ts";
import { type Machine, thisMachine } from "../../../machine/base/this-machine.ts";
import type { Context } from "../../context.ts";
import { EXIT, Failure, usage } from "../../failure.ts";

/** @param signal what ends the programs that the command starts; without it they end by themselves */
export function hereAsRoot({ env, signal }: Pick<Context, "env"> & { readonly signal?: AbortSignal }): Machine {
  if (process.getuid?.() !== 0) {
    throw new Failure("this looks at the machine itself, which only root may", {
      exitCode: EXIT.refused,
      wayOut: "run it with sudo, on the machine that runs the platform",
    });
  }
  try {
    return thisMachine(readInstance(env["SVC_INSTANCE"] ?? ""), signal);
  } catch (error) {
    throw usage(error instanceof Error ? error.message : String(error));
  }
}

/** A time as a part of a file's name, in UTC: `2026-11-29T081943Z`. Pure. */
export function fileTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replaceAll(":", "")}Z`;
}

/** @throws {Failure} a file cannot be made there, or one is there already */
export function newFile(name: string): string {
  const path = resolve(name);
  if (existsSync(path)) {
    throw new Failure(`there is a file ${path} already`, { exitCode: EXIT.conflict, wayOut: "name another one" });
  }
  if (!existsSync(dirname(path))) {
    throw new Failure(`there is no folder ${dirname(path)}`, { exitCode: EXIT.notFound });
  }
  return path;
}

/** @throws {Failure} there is no such file */
export function knownFile(name: string): string {
  const path = resolve(name);
  if (!existsSync(path)) throw new Failure(`there is no file ${path}`, { exitCode: EXIT.notFound });
  return path;
}
