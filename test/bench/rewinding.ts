/** Measures a rewind of a running sandbox to a snapshot of it: by HTTP, and until its first command answers. */

import { setTimeout as wait } from "node:timers/promises";
import { Sandbox } from "e2b";
import { api } from "../support/platform/platform.ts";
import { type Bench, timed } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

/** In which a copy is made for the next rewind. */
const COPY_MS = 2_000;

interface Rewound {
  readonly rewound: number;
  readonly command: number;
}

export async function rewinding({ platform, quick, say }: Bench): Promise<readonly Row[]> {
  const rounds = quick ? 2 : 15;
  const sandbox = await Sandbox.create({ timeoutMs: 600_000 });
  const post = async (what: string, body: object) => {
    const { status, json, text } = await api(platform, "POST", `/sandboxes/${sandbox.sandboxId}/${what}`, { body });
    if (status >= 300) throw new Error(`${what} answered ${status}: ${text}`);
    return json as { readonly snapshotID: string };
  };
  try {
    await sandbox.commands.run("echo first > /tmp/state");
    const rewind = async (snapshotID: string) => {
      await sandbox.commands.run("echo later > /tmp/state");
      const rewound = await timed(() => post("rewind", { snapshotID }));
      const command = await timed(async () => {
        const { stdout } = await sandbox.commands.run("cat /tmp/state");
        if (stdout.trim() !== "first") throw new Error(`the sandbox has the state '${stdout.trim()}' after a rewind`);
      });
      return { rewound, command: rewound + command };
    };
    const without: Rewound[] = [];
    const ready: Rewound[] = [];
    for (let round = 0; round < rounds; round++) {
      say(`rewind: ${round + 1} of ${rounds}`);
      // The first rewind to a snapshot makes a copy of it for the next one.
      const { snapshotID } = await post("snapshots", {});
      without.push(await rewind(snapshotID));
      await wait(COPY_MS);
      ready.push(await rewind(snapshotID));
      await Sandbox.deleteSnapshot(snapshotID);
    }
    const rows = (name: string, all: readonly Rewound[]) => [
      row({ name: `rewind, ${name}`, unit: "ms", ours: summarise(all.map(({ rewound }) => rewound)), budgets: [] }),
      row({
        name: `rewind to the first command, ${name}`,
        unit: "ms",
        ours: summarise(all.map(({ command }) => command)),
        budgets: [],
      }),
    ];
    return [...rows("no copy ready", without), ...rows("copy ready", ready)];
  } finally {
    await sandbox.kill();
  }
}
