/**
 * A server that binds a Unix socket under a temporary name and renames its file, or moves the directory of it, answers through the new
 * name after everything that restores its memory, and other files that have the old name by now stay as they are.
 */

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const root = { user: "root" };
const SLOW = { timeout: 60_000, interval: 100 };

let agent: RealAgent;
let program: string;
beforeAll(async () => {
  agent = await realAgent();
  program = (await readFile(new URL("../support/sandbox/renamed-sockets.py", import.meta.url))).toString("base64");
});
afterAll(() => agent.close());

const body = () => ({ snapshotId: randomUUID(), memory: true });
const copyOf = (snapshotId: string) => agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });
const checkpoint = ({ executionId }: Started) =>
  agent.call.checkpointExecution({ params: { executionId }, body: body() });

/** Expects that every socket answers by the name of its file, and that each file has its owner and mode. */
async function expectAnswers({ address }: Started): Promise<void> {
  const { output } = await command(address, "python3 /srv/program.py ask", root);
  const answers = Object.entries(JSON.parse(output) as Record<string, unknown>);
  expect(answers.length).toBe(48);
  const wrong = answers.filter(([, answer]) => answer !== "answer 640 1234 4321");
  expect(Object.fromEntries(wrong)).toEqual(
    Object.fromEntries(
      ["stream", "seqpacket", "dgram"].flatMap((how) => [
        [`${how}, the other file`, "another file"],
        [`${how}, what is left`, []],
      ]),
    ),
  );
}

test("sockets whose file was renamed answer by the new name after a pause, a rewind, in a copy and in a copy of the copy", async () => {
  const first = await agent.start();
  await background(
    first.address,
    `echo ${program} | base64 -d > /srv/program.py; exec python3 /srv/program.py > /srv/log 2>&1`,
    root,
  );
  const ready = async () => (await command(first.address, "ls /srv/sockets; cat /srv/log", root)).output;
  await expect.poll(ready, SLOW).toMatch(/^ready$|Traceback/m);
  await expectAnswers(first);

  const pause = await agent.call.pauseExecution({ params: { executionId: first.executionId }, body: body() });
  await agent.drop();
  const origin = { is: "paused" as const, snapshotId: pause.snapshotId, memory: true };
  const resumed = await agent.start({ sandboxId: first.sandboxId, origin });
  expect(resumed.restored).toBe("memory");
  await expectAnswers(resumed);

  const one = await checkpoint(resumed);
  await expectAnswers(resumed);
  const copy = await copyOf(one.snapshotId);
  await expectAnswers(copy);
  const two = await checkpoint(copy);
  const copyOfCopy = await copyOf(two.snapshotId);
  await expectAnswers(copyOfCopy);

  const { sandboxId, executionId: replaces } = resumed;
  const rewind = { is: "rewind" as const, snapshotId: one.snapshotId, memory: true, replaces };
  const rewound = await agent.start({ sandboxId, origin: rewind });
  await expectAnswers(rewound);
  await Promise.all([copy, copyOfCopy, rewound].map(({ executionId }) => agent.stop(executionId)));
  for (const { snapshotId } of [one, two]) await agent.call.deleteSnapshot({ params: { snapshotId } });
}, 500_000);
