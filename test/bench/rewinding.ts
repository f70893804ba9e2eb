/** Measures a rewind of a running sandbox to a snapshot of it: by HTTP, and until its first command answers. */

import { Sandbox } from "e2b";
import { api } from "../support/platform/platform.ts";
import { type Bench, timed } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

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
    const { snapshotID } = await post("snapshots", {});
    const answers: number[] = [];
    const commands: number[] = [];
    for (let round = 0; round < rounds; round++) {
      say(`rewind: ${round + 1} of ${rounds}`);
      await sandbox.commands.run("echo later > /tmp/state");
      const rewound = await timed(() => post("rewind", { snapshotID }));
      const command = await timed(async () => {
        const { stdout } = await sandbox.commands.run("cat /tmp/state");
        if (stdout.trim() !== "first") throw new Error(`the sandbox has the state '${stdout.trim()}' after a rewind`);
      });
      answers.push(rewound);
      commands.push(rewound + command);
    }
    return [
      row({ name: "rewind, no copy ready", unit: "ms", ours: summarise(answers), budgets: [] }),
      row({ name: "rewind to the first command", unit: "ms", ours: summarise(commands), budgets: [] }),
    ];
  } finally {
    await sandbox.kill();
  }
}
