/** The platform's table in the kernel, its link, and who else writes rules. */

import { existsSync } from "node:fs";
import type { Machine } from "../base/this-machine.ts";
import type { FirewallSeen } from "./evidence.ts";

interface Listed {
  readonly nftables: readonly { readonly chain?: { readonly name: string } }[];
}

export async function lookAtFirewall({ instance, run }: Machine): Promise<FirewallSeen> {
  const network = instance.network;
  const { status, stdout, problem, stderr } = await run("nft", ["-j", "list", "table", "inet", network]);
  if (problem !== undefined) throw new Error(problem);
  if (status !== 0 && !stderr.includes("No such file or directory")) throw new Error(stderr);
  const listed = status === 0 ? (JSON.parse(stdout) as Listed) : undefined;
  return {
    chains: listed?.nftables.flatMap(({ chain }) => (chain === undefined ? [] : [chain.name])),
    bridge: existsSync(`/sys/class/net/${network}0`),
    others: await others(run),
  };
}

async function others(run: Machine["run"]): Promise<readonly string[]> {
  const ufw = await run("ufw", ["status"]);
  const firewalld = await run("firewall-cmd", ["--state"]);
  return [
    ...(/^Status: active/m.test(ufw.stdout) ? ["ufw"] : []),
    ...(firewalld.stdout.trim() === "running" ? ["firewalld"] : []),
  ];
}
