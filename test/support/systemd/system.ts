/** A Debian with systemd as its first process, on this machine (`system`), and the commands that a test types there. */

import { type Ended, end } from "../machines/machines.ts";
import { checkout } from "../platform/platform.ts";

const TOOL = `${checkout}test/support/systemd/system`;
/** Its files, as this machine sees them. */
export const SYSTEM_ROOT = "/tmp/svc-systemd/root";
/** Its network, as this machine sees it. */
export const SYSTEM_NETWORK = "/run/netns/svc-systemd";

/** What such a system does not show, because it has this machine's kernel, or is not the machine's first one. */
export const NOT_NESTED = `not tested here, because a system inside another one does not have it:
- limits and modules of the kernel (/proc/sys/fs and vm are closed): 'up' raises and loads them on a real machine
- a boot of the machine itself, its firmware, its clock, udev: 'npm run test:reboot' takes from a machine what a reboot takes
- control groups are those of the machine below: of version 1 there, of version 1 here`;

export async function newSystem(release: string): Promise<void> {
  await removeSystem();
  const made = await end(TOOL, ["up", release]);
  if (made.status !== 0) throw new Error(made.said);
}

/**
 * One that reaches nobody, beside the other: from then on this file's functions are about it, in this process.
 * @returns its files, as this machine sees them
 */
export async function newClosedSystem(release: string): Promise<string> {
  process.env["SVC_TEST_SYSTEM"] = "closed";
  await newSystem(release);
  return "/tmp/svc-closed/root";
}

/** Whom programs of a closed system have asked until now, as `ADDRESS . PROTOCOL . PORT`. */
export async function asked(): Promise<readonly string[]> {
  const { status, said } = await end(TOOL, ["asked"]);
  if (status !== 0) throw new Error(said);
  return said.split("\n").filter((line) => line !== "");
}

export async function removeSystem(): Promise<void> {
  await end(TOOL, ["down"]);
}

/** Runs a command of the shell as a service of that systemd, and waits for its end. */
export function type(command: string): Promise<Ended> {
  return end(TOOL, ["run", "bash", "-c", command]);
}

/** As `type`; resolves to what was written, and throws when the command fails. */
export async function insist(command: string): Promise<string> {
  const { status, said } = await type(command);
  if (status !== 0) throw new Error(`'${command}' ended with ${status}: ${said}`);
  return said.trim();
}

/** A property of a unit, as `systemctl show` has it. */
export function property(unit: string, name: string): Promise<string> {
  return insist(`systemctl show --property ${name} --value ${unit}`);
}
