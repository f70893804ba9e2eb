/** Checks of the nodes as the orchestrator sees them. Pure. */

import type { Check } from "./check.ts";
import { otherFindings } from "./findings.ts";

const TAKEN = ["memory.", "disks.", "network.", "blobs.", "node.clock"];
/** Further apart, leases and timeouts are not what they say. */
const SKEW_MS = 2_000;

export const nodeChecks: readonly Check[] = [
  {
    id: "clock.nodes",
    section: "clock",
    severity: "fails",
    problem: "the clocks of a node and of the orchestrator differ",
    evidence: ({ nodes }) =>
      nodes
        ?.filter(({ clockSkewMs }) => clockSkewMs !== null && Math.abs(clockSkewMs) > SKEW_MS)
        .map(({ id, clockSkewMs }) => `node ${id} is ${clockSkewMs ?? 0} ms off`),
    fix: "let chrony or systemd-timesyncd keep both clocks",
  },
  {
    id: "nodes.away",
    section: "nodes",
    severity: "fails",
    problem: "a node does not serve",
    evidence: ({ nodes, programs }) => {
      const agent = programs?.find(({ program }) => program === "agent");
      // This machine's own agent that is down is the failure of another check.
      const isSaid = (own: boolean) =>
        own && agent !== undefined && (agent.pid === undefined || agent.silent !== undefined);
      return nodes
        ?.filter(({ status, own }) => (status === "unhealthy" || status === "connecting") && !isSaid(own))
        .map(({ id, status, lastHeardAt }) => `node ${id} is ${status}, last heard of at ${lastHeardAt}`);
    },
    fix: "look at that machine: `svc doctor` there; docs/operating/machines.md",
  },
  {
    id: "nodes.findings",
    section: "nodes",
    severity: "warns",
    problem: "a node cannot do something",
    evidence: otherFindings(TAKEN),
    fix: "`svc node info NODE` shows the way out",
  },
  {
    id: "versions.nodes",
    section: "versions",
    severity: "warns",
    problem: "a node runs another version than the orchestrator",
    evidence: ({ nodes, programs }) => {
      const own = programs?.find(({ program }) => program === "orchestrator")?.version;
      if (nodes === undefined || own === undefined) return nodes && [];
      const [version] = own.split(" ");
      return nodes
        .filter((node) => node.version !== version)
        .map((node) => `node ${node.id}: ${node.version}; orchestrator: ${version ?? ""}`);
    },
    fix: "run ./scripts/up of the new version on that machine; neighbouring versions work together meanwhile",
  },
];
