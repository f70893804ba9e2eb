/** Servers change the root of their processes: that works, and holds through dumps and restores. */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const root = { user: "root" };
const SLOW = { timeout: 90_000, interval: 100 };

/**
 * Gives up root behind a changed root, as sshd does, with a file open that has no name any more and a socket that answers
 * with the number of entries that it sees in its root.
 */
const SERVER = `
import os, socket
os.makedirs("/srv/jail/empty", exist_ok=True)
os.chdir("/srv/jail")
os.chroot(".")
held = os.open("/held", os.O_RDWR | os.O_CREAT)
os.write(held, b"held")
os.unlink("/held")
server = socket.create_server(("127.0.0.1", 7000))
os.setgroups([]); os.setgid(1000); os.setuid(1000)
while True:
    peer, _ = server.accept()
    peer.sendall(f"{os.pread(held, 9, 0).decode()} {os.listdir('/')} {os.path.exists('/etc/passwd')} {os.getuid()}".encode())
    peer.close()
`;
const ASK = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/7000; cat <&3'";
const ANSWER = "held ['empty'] False 1000";

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent();
});
afterAll(() => agent.close());

const ask = (executionId: string) => ({ params: { executionId }, body: { snapshotId: randomUUID(), memory: true } });
const answer = async ({ address }: Started) => (await command(address, ASK)).output;

test("root can run a program with another root, and a user cannot", async () => {
  const one = await agent.start();
  expect((await command(one.address, "chroot --userspec=user:user / id -un", root)).output).toBe("user");
  expect((await command(one.address, "/usr/sbin/chroot / true")).output).toMatch(/Operation not permitted/);
  await agent.stop(one.executionId);
});

test("a server behind another root goes on after a pause and in a copy, still behind it", async () => {
  const one = await agent.start();
  await background(one.address, `exec python3 -c "${SERVER.replaceAll('"', '\\"')}"`, root);
  await expect.poll(() => answer(one), SLOW).toBe(ANSWER);
  const { snapshotId } = await agent.call.checkpointExecution(ask(one.executionId));
  const copy = await agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });
  expect(copy.restored).toBe("memory");
  expect(await answer(copy)).toBe(ANSWER);
  await agent.stop(copy.executionId);
  const pause = await agent.call.pauseExecution(ask(one.executionId));
  await agent.drop();
  const origin = { is: "paused" as const, snapshotId: pause.snapshotId, memory: true };
  const again = await agent.start({ sandboxId: one.sandboxId, origin });
  expect(again.restored).toBe("memory");
  expect(await answer(again)).toBe(ANSWER);
  await agent.stop(again.executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
});
