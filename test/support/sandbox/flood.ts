/** A program in a sandbox that sends all the time, so that the first packet that may leave is among the counted ones. */

import type { Sandbox } from "e2b";
import type { Internet } from "../internet/internet.ts";

/** Sends UDP and TCP, each time with a new socket, by turns to a forbidden and to an allowed address. */
export async function startFlood(sandbox: Sandbox, forbidden: string, allowed: string): Promise<void> {
  const program = `import socket, time
def tcp(address, port):
  s = socket.socket(); s.setblocking(False)
  try: s.connect((address, port))
  except OSError: pass
  return s
def udp(address):
  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  try: s.sendto(b"x", (address, 7))
  except OSError: pass
  s.close()
held = []
turn = 0
while True:
  try:
    turn += 1
    for address in ("${forbidden}", "${allowed}"):
      udp(address)
      # Seldom: connections that have ended count for a while, and there is a limit to those of one sandbox.
      if turn % 50 == 0: held.append(tcp(address, 80))
    while len(held) > 6: held.pop(0).close()
  except OSError: pass
  time.sleep(0.005)`;
  await sandbox.files.write("/tmp/flood.py", program);
  const handle = await sandbox.commands.run("python3 /tmp/flood.py", { background: true, timeoutMs: 0 });
  await handle.disconnect();
}

/** Counts the packets to an address, from any sender. */
export function arrivedAt(internet: Internet, address: string): Promise<number> {
  return internet.packets("border", { address });
}
