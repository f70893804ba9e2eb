/** A server in a sandbox that sends back what it receives, and a connection to it from outside. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect } from "vitest";
import { background } from "../sandbox/envd-commands.ts";

const ECHO = `python3 -c "
import socket
server = socket.create_server(('0.0.0.0', 7000))
while True:
    peer, _ = server.accept()
    while data := peer.recv(100): peer.sendall(data)
"`;

/** Opens a connection to a server in the sandbox that sends back what it receives. */
export async function connected(address: string) {
  await background(address, ECHO);
  const open = async () => {
    const socket = connect(7000, address);
    await once(socket, "connect");
    return socket;
  };
  let socket: Socket | undefined;
  await expect.poll(async () => (socket = await open().catch(() => undefined))).toBeDefined();
  return {
    async say(text: string): Promise<string> {
      socket?.write(text);
      const [answer] = (await once(socket as Socket, "data")) as [Buffer];
      return answer.toString("utf8");
    },
    end: () => socket?.destroy(),
  };
}
