/** What every part that looks at a machine works with: the instance, programs, the clock, and places that tests replace. */

import { run } from "./commands.ts";
import { type Instance } from "./instance.ts";

export interface Places {
  readonly dockerSocket: string;
  readonly criu: string;
  readonly resolvConf: string;
}

export interface Machine {
  readonly instance: Instance;
  readonly run: typeof run;
  readonly now: () => number;
  readonly places: Places;
  /** Aborted when the operator ends the command: programs that `run` has started are killed. */
  readonly signal?: AbortSignal;
}

export function thisMachine(instance: Instance, signal?: AbortSignal): Machine {
  const places = {
    dockerSocket: "/var/run/docker.sock",
    criu: `${instance.places.bin}/criu`,
    resolvConf: "/etc/resolv.conf",
  };
  if (signal === undefined) return { instance, run, now: Date.now, places };
  const interruptible: typeof run = (program, args, given) => run(program, args, { ...given, signal });
  return { instance, run: interruptible, now: Date.now, places, signal };
}
