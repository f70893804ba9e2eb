/** What stands in the way of a sandbox's packets, as findings: every text in one place. Pure. */

import type { Finding } from "../../../shared/program/finding.ts";
import type { Plan } from "../addresses.ts";
import type { Way } from "./probe-table.ts";
import { type Culprit, culpritText } from "./trace.ts";

/** Why a packet did not arrive. */
export type Obstacle =
  | { readonly is: "rule"; readonly culprit: Culprit; readonly dockerChain: boolean }
  | { readonly is: "setting"; readonly name: string }
  | { readonly is: "unknown"; readonly saw: string };

const PROBLEMS: Readonly<Record<Way, string>> = {
  forward: "no packet of a sandbox leaves this node: every connection to an address times out or is refused",
  resolver: "no question of a sandbox reaches this node's resolver: names cannot be looked up",
  egress:
    "no connection of a sandbox reaches this node's egress process: those under a policy with names, rules or a proxy fail",
};

export function findingOf(way: Way, obstacle: Obstacle, plan: Pick<Plan, "network">): Finding {
  const links = `${plan.network}-`;
  return { id: `network.${way}`, problem: PROBLEMS[way], ...said(way, obstacle, links) };
}

function said(way: Way, obstacle: Obstacle, links: string): Pick<Finding, "evidence" | "wayOut"> {
  switch (obstacle.is) {
    case "setting":
      return { evidence: `the kernel setting ${obstacle.name} is 0`, wayOut: `sysctl -w ${obstacle.name}=1` };
    case "unknown":
      return {
        evidence: obstacle.saw,
        wayOut: "look at 'nft list ruleset', 'iptables-legacy -S', 'tc filter show' and 'ip rule show' on the node",
      };
    case "rule": {
      const { culprit, dockerChain } = obstacle;
      const gone = "; Docker's chain DOCKER-USER, which holds this node's rule, is not there";
      const isDocker = way === "forward" && !dockerChain && culprit.table === "filter" && culprit.chain === "FORWARD";
      return {
        evidence: `${culpritText(culprit)}${isDocker ? gone : ""}`,
        wayOut: `${isDocker ? "restart Docker, which makes DOCKER-USER again, or allow" : "allow"} the links of sandboxes there: ${allowing(way, culprit, links)}`,
      };
    }
  }
}

/** Commands that let the packets pass, in the words of the tool that most likely made the chain. */
function allowing(way: Way, { family, table, chain }: Culprit, links: string): string {
  const isIptables =
    family === "ip" && (table === "filter" || table === "mangle" || table === "raw" || table === "nat");
  const replies = way === "forward";
  if (isIptables) {
    const command = `iptables -t ${table} -I ${chain}`;
    const back = `; ${command} -o ${links}+ -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`;
    return `${command} -i ${links}+ -j ACCEPT${replies ? back : ""}`;
  }
  const command = `nft insert rule ${family} ${table} ${chain}`;
  const back = `; ${command} oifname '"${links}*"' ct state established,related accept`;
  return `${command} iifname '"${links}*"' accept${replies ? back : ""}`;
}
