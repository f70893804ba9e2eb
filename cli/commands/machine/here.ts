/** The machine that the command runs on: for root, and the instance that the environment names. Files that a command makes there. */

import { existsSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
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

/** Says which platform a command changes, on a machine that has several: sudo drops the variable that names one. */
export function sayInstance({ out }: Pick<Context, "out">, { instance }: Pick<Machine, "instance">): void {
  const others = platformsIn(join(instance.root, "etc")).filter((name) => name !== instance.name);
  if (others.length === 0) return;
  const also = others.map((name) => (name === "" ? "one without a name" : name)).join(", ");
  out.note(
    `This is for the platform ${instance.name === "" ? "without a name" : instance.name}; this machine also has ${also}. SVC_INSTANCE names one, behind sudo: sudo env SVC_INSTANCE=NAME …`,
  );
}

/** The names of the platforms that were set up on a machine. */
function platformsIn(etc: string): readonly string[] {
  return readdirSync(etc).flatMap((folder) => {
    const name = /^svc(?:-([a-z][a-z0-9]{0,4}))?$/.exec(folder);
    const isSetUp = ["orchestrator", "agent", "edge"].some((program) =>
      existsSync(join(etc, folder, `${program}.env`)),
    );
    return name !== null && isSetUp ? [name[1] ?? ""] : [];
  });
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
