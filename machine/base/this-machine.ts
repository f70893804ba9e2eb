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
}

export function thisMachine(instance: Instance): Machine {
  const places = {
    dockerSocket: "/var/run/docker.sock",
    criu: `${instance.places.bin}/criu`,
    resolvConf: "/etc/resolv.conf",
  };
  return { instance, run, now: Date.now, places };
}
