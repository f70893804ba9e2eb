/** What a node can do as text for operators: one line each, then what is missing with the way out. Pure. */

import type { NodeFacts } from "../../shared/agent-api/routes.ts";
import { findingText } from "../../shared/program/finding.ts";
import { COMMIT, VERSION } from "../../shared/version.ts";
import { findingsOf } from "./capability-watch.ts";

type Capabilities = NodeFacts["capabilities"];

export function describeAbilities(capabilities: Capabilities): string {
  const { memorySnapshots, lazyPages = false, diskLimit, volumes = false, detail } = capabilities;
  const {
    memorySnapshots: memory = "",
    lazyPages: lazy = "",
    diskLimit: disks = "",
    volumes: kept = "",
    ...rest
  } = detail;
  const can = (name: string, works: boolean, how: string) => `${works ? "yes" : "no "} ${name.padEnd(18)} ${how}`;
  const facts = { agent: `${VERSION} (${COMMIT})`, ...rest };
  return [
    can("memory snapshots", memorySnapshots, memory),
    can("lazy pages", lazyPages, lazy),
    can("own disks", diskLimit, disks),
    can("volumes", volumes, kept),
    ...Object.entries(facts).map(([name, value]) => `    ${name.padEnd(18)} ${value}`),
    ...findingsOf(capabilities).map((finding) => `${finding.id}: ${findingText(finding)}`),
  ].join("\n");
}
