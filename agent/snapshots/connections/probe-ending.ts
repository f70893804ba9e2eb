/** Finds out whether this kernel ends connections on request, which a pause needs for those that leave a sandbox. */

import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { looking, type RunCommand } from "../../host/command.ts";

const LIMIT_MS = 1_000;

/** In words, for the node's capabilities. */
export async function probeEnding(run: RunCommand): Promise<string> {
  const ended = await tryOut(run).catch(() => false);
  return ended
    ? "those that leave a sandbox end when it pauses"
    : "those that leave a sandbox end when it resumes from memory on the disk; thawed earlier it keeps them until their " +
        "peers end them, because the kernel has no CONFIG_INET_DIAG_DESTROY";
}

async function tryOut(run: RunCommand): Promise<boolean> {
  const server = createServer((peer) => peer.on("error", () => undefined)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    const closed = once(socket, "close", { signal: AbortSignal.timeout(LIMIT_MS) });
    socket.on("error", () => undefined).resume();
    closed.catch(() => undefined);
    // It ends connections, and a kill of it half-way costs a repetition, as that of a look does.
    await looking(run)("ss", [
      "--kill",
      "--no-header",
      "--numeric",
      "--tcp",
      "state",
      "established",
      `dst 127.0.0.1:${port}`,
    ]);
    await closed;
    return true;
  } finally {
    socket.destroy();
    server.close();
  }
}
