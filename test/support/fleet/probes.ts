/** Invariants of a fleet that only a sandbox shows: what its network lets pass, and that a listed snapshot starts. */

import { Sandbox } from "e2b";
import { api } from "../platform/platform.ts";
import { says } from "./counting.ts";
import type { Fleet } from "./fleet.ts";

/** A look at every sandbox would take longer than the fault. */
const MOST_PROBED = 4;
const ENVD_PORT = 49_983;
/** Where clouds answer for the machine, which no sandbox may reach. */
const METADATA = "169.254.169.254";

/** A sandbox reaches itself, and no other sandbox and nothing that answers for its machine. */
export async function egressProblems(fleet: Fleet, running: readonly string[]): Promise<readonly string[]> {
  const probed = running.slice(0, MOST_PROBED);
  const addresses = await Promise.all(probed.map((id) => says(fleet, id, "hostname -I").then((text) => text.trim())));
  const problems = await Promise.all(
    probed.map(async (id, at) => {
      const others = addresses.filter((_, other) => other !== at);
      const reached = await Promise.all(
        [...others.map((address) => `${address} ${ENVD_PORT}`), `${METADATA} 80`].map(async (to) =>
          (await reaches(fleet, id, to)) ? [`${id} reaches ${to}`] : [],
        ),
      );
      const self = (await reaches(fleet, id, `127.0.0.1 ${ENVD_PORT}`)) ? [] : [`${id} does not reach its own envd`];
      return [...self, ...reached.flat()];
    }),
  );
  return problems.flat();
}

async function reaches(fleet: Fleet, id: string, to: string): Promise<boolean> {
  const [address, port] = to.split(" ");
  const attempt = `timeout 2 bash -c 'exec 3<>/dev/tcp/${address}/${port}' 2>/dev/null && echo open || echo closed`;
  return (await says(fleet, id, attempt)) === "open\n";
}

/** The newest snapshot that the API lists starts. */
export async function snapshotProblems(fleet: Fleet): Promise<readonly string[]> {
  const { json } = await api(fleet.through(0), "GET", "/snapshots?limit=1");
  const [newest] = json as readonly { snapshotID: string }[];
  if (newest === undefined) return [];
  try {
    const copy = await Sandbox.create(newest.snapshotID, { ...fleet.sdk(0), timeoutMs: 300_000 });
    const { stdout } = await copy.commands.run("echo there");
    await copy.kill();
    return stdout === "there\n" ? [] : [`snapshot ${newest.snapshotID} started without its programs`];
  } catch (error) {
    return [`snapshot ${newest.snapshotID} does not start: ${String(error)}`];
  }
}
