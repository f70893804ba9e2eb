/** The machine that the command runs on: for root, and the instance that the environment names. */

import { readInstance } from "../../../machine/base/instance.ts";
import { type Machine, thisMachine } from "../../../machine/base/this-machine.ts";
import type { Context } from "../../context.ts";
import { EXIT, Failure, usage } from "../../failure.ts";

export function hereAsRoot({ env }: Pick<Context, "env">): Machine {
  if (process.getuid?.() !== 0) {
    throw new Failure("this looks at the machine itself, which only root may", {
      exitCode: EXIT.refused,
      wayOut: "run it with sudo, on the machine that runs the platform",
    });
  }
  try {
    return thisMachine(readInstance(env["SVC_INSTANCE"] ?? ""));
  } catch (error) {
    throw usage(error instanceof Error ? error.message : String(error));
  }
}
