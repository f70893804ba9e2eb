/** A program in a sandbox that sends all the time, so that the first packet that may leave is among those counted. */

import type { Sandbox } from "e2b";
import type { Internet } from "./internet/internet.ts";

/** UDP and TCP, with a socket of its own each time, to a forbidden and to an allowed address by turns. */
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
while True:
  try:
    for address in ("${forbidden}", "${allowed}"):
      udp(address)
      for port in (80, 9000): held.append(tcp(address, port))
    while len(held) > 60: held.pop(0).close()
  except OSError: pass
  time.sleep(0.005)`;
  await sandbox.files.write("/tmp/flood.py", program);
  const handle = await sandbox.commands.run("python3 /tmp/flood.py", { background: true, timeoutMs: 0 });
  await handle.disconnect();
}

/** Of an address, whoever sent them. */
export function arrivedAt(internet: Internet, address: string): Promise<number> {
  return internet.packets("border", { address });
}
