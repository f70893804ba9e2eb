/** Commands for the machine that runs the platform: they look at the machine itself, as root, and also when no program answers. */

import type { Command } from "../definition.ts";

export const machineCommands: readonly Command[] = [
  {
    name: "doctor",
    about: "find out what is wrong with the platform on this machine, and how to mend it",
    more: "For root, on the machine itself; it works while the programs are down. Failures come first, the cause before its effects. Exit code 1: something has failed; warnings do not count.",
    options: [
      {
        flags: "--fix",
        about: "mends what can be mended without any loss: access to files, forwarding, kernel modules",
      },
      { flags: "--json", about: "the whole report, with the checks that passed" },
      { flags: "--all", about: "shows the checks that passed, too" },
    ],
    example: "svc doctor --fix",
    load: async () => (await import("../commands/machine/doctor.ts")).doctor,
  },
  {
    name: "debug bundle",
    about: "collect state, logs, metrics and doctor's report in one archive, without secrets",
    more: "For root, on the machine itself. A part that fails or takes too long is left out, and the archive says why. It is for its owner alone (0600).",
    options: [
      { flags: "--since <duration>", about: "logs from that time before now on (1h)", read: "duration" },
      { flags: "--file <path>", about: "where the archive is written (svc-debug-TIME.tar.gz)" },
    ],
    example: "svc debug bundle --since 2h --file ./svc-debug.tar.gz",
    load: async () => (await import("../commands/machine/bundle.ts")).bundle,
  },
];
