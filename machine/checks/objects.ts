/** Checks of what the platform has made on the machine: invariants, orphans, and what a sandbox reaches. Pure. */

import type { Evidence } from "../evidence/evidence.ts";
import { nodeProblems, type Problem, recordProblems, unusedNetworks } from "../invariants/invariants.ts";
import type { Check } from "./check.ts";

function problems({ objects: seen, records, metrics, at }: Evidence): readonly Problem[] | undefined {
  if (seen === undefined) return undefined;
  const counted = metrics?.find(({ program }) => program === "agent")?.samples;
  const objects = { ...seen, fetchedDisks: counted?.find(({ name }) => name === "svc_disks_fetched")?.value };
  return [
    ...(records === undefined ? [] : recordProblems(records, objects.containers, at)),
    ...nodeProblems(objects),
    ...unusedNetworks(objects),
  ];
}

function ofKind(kind: Problem["kind"]): Check["evidence"] {
  return (evidence) => {
    if (!evidence.instance.programs.includes("agent")) return [];
    return problems(evidence)
      ?.filter((one) => one.kind === kind)
      .map(({ text }) => text);
  };
}

export const objectChecks: readonly Check[] = [
  {
    id: "invariants.broken",
    section: "invariants",
    severity: "fails",
    problem: "records, containers and networks say different things",
    evidence: ofKind("invariant"),
    fix: "the agent mends this within a minute while it runs: look again, then at ./scripts/service log agent",
  },
  {
    id: "orphans.objects",
    section: "orphans",
    severity: "fails",
    problem: "something is left of a sandbox that is gone",
    evidence: ofKind("orphan"),
    fix: "the agent removes it within a minute while it runs: look again, then remove it (docker rm -f NAME, ip link del LINK)",
  },
  {
    id: "orphans.mounts",
    section: "orphans",
    severity: "warns",
    problem: "a mount or a loop device is left whose file is deleted",
    evidence: ({ leftovers }) => leftovers,
    fix: "umount the place, or losetup --detach the device, when no container uses it",
  },
  {
    id: "egress.metadata",
    section: "egress",
    severity: "fails",
    problem: "a sandbox reaches the metadata service of this machine's cloud",
    evidence: (evidence) =>
      evidence.egress?.answered === undefined
        ? evidence.egress && []
        : [`169.254.169.254 answered in ${evidence.egress.slot}: ${evidence.egress.answered}`],
    fix: "restart the agent (./scripts/service restart agent), and tell the authors of the platform",
  },
];
