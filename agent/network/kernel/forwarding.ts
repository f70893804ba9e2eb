/** IPv4 forwarding of the host, without which no packet of a sandbox leaves it. */

import { readFile, writeFile } from "node:fs/promises";

/** All links, and those that will be made. The first one sets the other, and every link, when it changes. */
const SETTINGS = ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/conf/default/forwarding"];

/** Switches forwarding on. True: it was off. */
export async function keepForwarding(): Promise<boolean> {
  let changed = false;
  for (const path of SETTINGS) {
    if ((await readFile(path, "utf8")).trim() !== "0") continue;
    await writeFile(path, "1");
    changed = true;
  }
  return changed;
}
