/** Machines of their own on this one (`machine`), each with a checkout of this version and nothing of the platform. */

import { execFile } from "node:child_process";
import { checkout } from "../platform/platform.ts";

const TOOL = `${checkout}test/support/machines/machine`;
const OWN_CHECKOUT = "/root/svc";
/** A set-up of a bare machine installs and builds everything. */
const LIMIT_MS = 1_800_000;

export interface Machine {
  readonly name: string;
  readonly address: string;
}

export interface Ended {
  readonly status: number;
  /** What it wrote, errors too. */
  readonly said: string;
  readonly tookMs: number;
}

export async function newMachine(name: string, address: string): Promise<Machine> {
  const machine = { name, address };
  await removeMachine(machine);
  const made = await end(TOOL, ["up", name, address]);
  if (made.status !== 0) throw new Error(made.said);
  await insist(machine, `git clone --quiet --no-hardlinks ${checkout} ${OWN_CHECKOUT}`, "/");
  return machine;
}

export async function removeMachine({ name }: Pick<Machine, "name">): Promise<void> {
  await end(TOOL, ["down", name]);
}

/** Types a command in the machine's checkout, and waits for its end. */
export function type({ name }: Machine, command: string, directory = OWN_CHECKOUT): Promise<Ended> {
  return end(TOOL, ["run", name, "bash", "-c", `cd ${directory} && ${command}`]);
}

/** As `type`; resolves to what was written, and throws when the command fails. */
export async function insist(machine: Machine, command: string, directory?: string): Promise<string> {
  const { status, said } = await type(machine, command, directory);
  if (status !== 0) throw new Error(`${machine.name}: '${command}' ended with ${status}: ${said}`);
  return said;
}

export function end(command: string, args: readonly string[]): Promise<Ended> {
  const begun = performance.now();
  return new Promise((resolve) => {
    execFile(command, [...args], { timeout: LIMIT_MS, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      const status = error === null ? 0 : typeof error.code === "number" ? error.code : 1;
      resolve({ status, said: `${stdout}${stderr}`, tookMs: performance.now() - begun });
    });
  });
}
