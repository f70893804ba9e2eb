/** TCP connections of sandboxes around a dump and a restore: those that stay inside survive, those that leave end. */

import { looking, type RunCommand } from "../../host/command.ts";
import type { Plan, Slot } from "../../network/addresses.ts";
import type { Inside } from "../store/manifest.ts";
import { closeOutside, LOCK_TABLE } from "./close-outside.ts";
import { leavesSandbox } from "./leaving.ts";

/** Mark of the packets with which CRIU restores connections: SOCCR_MARK of soccr/soccr.h. */
const RESTORING_MARK = "0xc114";

export interface Connections {
  /**
   * Closes what leaves the sandbox in the images of a dump; the dumped sandbox keeps it.
   * @throws {Error} if an image is damaged
   */
  closeInImages(images: string, slot: Slot): Promise<Inside>;
  /** Before a restore: the slot gets the sandbox's earlier addresses for itself, and holds its inner packets back. */
  prepare(slot: Slot, inside: Inside): Promise<void>;
  /** After a restore: nothing is held back, also if CRIU has not ended that. */
  release(slot: Slot, inside: Inside): Promise<void>;
  /** False: no connection leaves the frozen sandbox of this process. */
  areOutside(pid: number): Promise<boolean>;
  /** Ends what leaves a frozen sandbox: the peers get a reset if the network is open, the processes inside an error. */
  endOutside(slot: Slot): Promise<void>;
  /** After a failed dump: if CRIU was killed in it, its network lock stays and no connection sends any more. Ends both. */
  mend(slot: Slot): Promise<void>;
}

export function hostConnections(plan: Pick<Plan, "subnet" | "gateway">, run: RunCommand): Connections {
  const within = (slot: Slot, command: readonly string[], input = "") =>
    run("nsenter", [`--net=${slot.netnsPath}`, ...command], { input });
  const listTables = (slot: Slot) => looking(run)("nsenter", [`--net=${slot.netnsPath}`, "nft", "list", "tables"]);
  // The kernel applies the filter; without CONFIG_INET_DIAG_DESTROY it ends nothing, and ss reports no error.
  const end = (slot: Slot, ...filter: string[]) =>
    within(slot, ["ss", "--kill", "--no-header", "--numeric", "--tcp", "state", "connected", ...filter]);

  return {
    closeInImages: (images, slot) => closeOutside(images, slot.address, plan),

    async prepare(slot, { addresses, connections }) {
      const earlier = addresses.filter((one) => one !== slot.address);
      const commands = earlier.map((one) => `addr replace ${one}/32 dev lo\n`);
      await Promise.all([
        commands.length > 0 && within(slot, ["ip", "-batch", "-"], commands.join("")),
        connections && within(slot, ["nft", "-f", "-"], LOCK_TEXT),
      ]);
    },

    async release(slot, { connections }) {
      if (connections) await within(slot, ["nft", "-f", "-"], `add table ${LOCK_TABLE}\ndelete table ${LOCK_TABLE}\n`);
    },

    areOutside: leavesSandbox,

    async endOutside(slot) {
      // Of its own subnet a sandbox reaches its own addresses and the gateway, from which the node's proxy connects.
      await end(slot, `( not dst ${plan.subnet} or dst ${plan.gateway} ) and not dst 127.0.0.0/8 and not dst [::1]`);
    },

    async mend(slot) {
      const tables = (await listTables(slot)).match(/^table inet CRIU-\S+$/gm) ?? [];
      if (tables.length === 0) return;
      await end(slot);
      await within(slot, ["nft", "-f", "-"], tables.map((one) => `delete ${one}\n`).join(""));
    },
  };
}

const LOCK_TEXT = `table ${LOCK_TABLE} {
  chain output {
    type filter hook output priority 0; policy accept;
    oifname "lo" meta l4proto tcp meta mark != ${RESTORING_MARK} drop
  }
}
`;
