/** What a memory image depends on of the machine it is restored on, and what of it differs on another one. Pure. */

import { type Static, Type } from "typebox";
import { isOlder } from "../../shared/older-version.ts";

/** Properties of the machine that a memory image was made on. */
export const Origins = Type.Object({
  kernel: Type.String(),
  architecture: Type.String(),
  /** As the kernel names them, divided by spaces. */
  cpuFlags: Type.String(),
  criu: Type.String(),
  runc: Type.String(),
  envd: Type.String(),
});
export type Origins = Static<typeof Origins>;

/** The machine of a restore. What is absent is not compared. */
export interface Restorer extends Pick<Origins, "architecture" | "cpuFlags"> {
  readonly kernel?: string;
  readonly criu?: string;
  /** Versions of envd whose files this machine has: a memory image maps those of its own. */
  readonly envds?: readonly string[];
}

const FLAGS_NAMED = 5;

/**
 * What stands in the way of a restore here, a clause for each; empty: nothing. A processor must have at least the features that
 * programs have seen. Kernel and CRIU may be newer than those of the dump, since both read what earlier ones wrote; an older
 * one may lack what the image holds, and would drop it in silence. Any version of runc starts a restore.
 */
export function differences(made: Origins, here: Restorer): string[] {
  if (made.architecture !== here.architecture)
    return [`its memory is of a machine with ${made.architecture}, this one has ${here.architecture}`];
  const found: string[] = [];
  const present = new Set(here.cpuFlags.split(" "));
  const missing = made.cpuFlags.split(" ").filter((flag) => flag !== "" && !present.has(flag));
  if (missing.length > 0) {
    const more = missing.length > FLAGS_NAMED ? ` and ${missing.length - FLAGS_NAMED} more` : "";
    found.push(
      `this machine's processor lacks ${missing.slice(0, FLAGS_NAMED).join(", ")}${more}, which its memory counts on`,
    );
  }
  if (isOlder(here.kernel, made.kernel))
    found.push(`its memory is of kernel ${made.kernel}, and this machine's is older (${here.kernel})`);
  if (isOlder(here.criu, made.criu))
    found.push(`its memory is of CRIU ${made.criu}, and this machine's is older (${here.criu})`);
  if (here.envds !== undefined && !here.envds.includes(made.envd))
    found.push(
      `its memory needs envd ${made.envd}, which this machine does not have (${here.envds.join(", ") || "none"})`,
    );
  return found;
}
