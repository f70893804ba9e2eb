/** Connections of a sandbox over a resume from memory and in a copy, through the agent and Docker. */

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const SLOW = { timeout: 90_000, interval: 100 };
// Numbers go over a connection to each address and back, and the last one is written down. Who connects from outside is
// answered, and the end of that connection is written down too.
const TALK = `python3 -c "
import os, socket, sys, threading, time
def write(name, text):
    open('/tmp/' + name + '.new', 'w').write(text)
    os.rename('/tmp/' + name + '.new', '/tmp/' + name)
def echo(server):
    peer, _ = server.accept()
    while data := peer.recv(100): peer.sendall(data)
def outside(server):
    peer, _ = server.accept()
    try:
        while data := peer.recv(100): peer.sendall(data)
    except OSError: pass
    write('outside', 'ended')
clients = []
for address in ('127.0.0.1', sys.argv[1]):
    server = socket.create_server((address, 7001))
    threading.Thread(target=echo, args=(server,)).start()
    clients.append(socket.create_connection((address, 7001), timeout=300))
threading.Thread(target=outside, args=(socket.create_server(('0.0.0.0', 7002)),)).start()
number = 0
while True:
    number += 1
    for client in clients:
        client.sendall(number.to_bytes(4, 'big'))
        if int.from_bytes(client.recv(4), 'big') != number: raise SystemExit('another number')
    write('number', str(number))
    time.sleep(0.02)
" `;

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent({ SVC_FROZEN_SECONDS: "3600" });
});
afterAll(() => agent.close());

const numberOf = async (address: string) => Number((await command(address, "cat /tmp/number")).output);
const talksOn = async (address: string) => {
  const before = await numberOf(address);
  await expect.poll(() => numberOf(address), SLOW).toBeGreaterThan(before + 5);
};

test("a pair of programs talks on after a resume from memory and in a copy; who is connected from outside sees the end", async () => {
  const started = await agent.start();
  await background(started.address, `${TALK} ${started.address}`);
  await expect.poll(() => numberOf(started.address), SLOW).toBeGreaterThan(3);
  const outside = connect(7002, started.address).on("error", () => undefined);
  await once(outside, "connect");
  outside.write("before");
  await once(outside, "data");

  const copied = { executionId: started.executionId };
  const { snapshotId: copy } = await agent.call.checkpointExecution({
    params: copied,
    body: { snapshotId: randomUUID(), memory: true },
  });
  outside.write("after");
  await once(outside, "data");
  await talksOn(started.address);
  const fork = await agent.start({ origin: { is: "snapshot", snapshotId: copy, memory: true } });
  await talksOn(fork.address);
  await expect.poll(async () => (await command(fork.address, "cat /tmp/outside")).output, SLOW).toBe("ended");
  await agent.stop(fork.executionId);

  const closed = new Promise((resolve) => outside.once("close", resolve));
  const { snapshotId } = await agent.call.pauseExecution({
    params: { executionId: started.executionId },
    body: { snapshotId: randomUUID(), memory: true },
  });
  await closed;
  await agent.drop();
  const { sandboxId } = started;
  const resumed = await agent.start({ sandboxId, origin: { is: "paused", snapshotId, memory: true } });
  expect(resumed.restored).toBe("memory");
  await talksOn(resumed.address);
  await expect.poll(async () => (await command(resumed.address, "cat /tmp/outside")).output, SLOW).toBe("ended");
  await agent.stop(resumed.executionId);
});
