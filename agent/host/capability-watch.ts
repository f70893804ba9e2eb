/**
 * The node's capabilities as they are now. What memory depends on may be mended or broken while the agent runs, so its files are
 * looked at in rounds, and the capabilities are probed again when these have changed.
 */

import type { NodeFacts } from "../../shared/agent-api/routes.ts";
import type { AppError } from "../../shared/http/errors.ts";
import type { Finding } from "../../shared/program/finding.ts";
import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";
import { COMMIT, VERSION } from "../../shared/version.ts";
import { memoryRefusal, noLazyPages, noMemorySnapshots, noOwnDisks } from "./findings.ts";

const EVERY_MS = 10_000;

type Capabilities = NodeFacts["capabilities"];

export interface CapabilityWatch {
  now(): Capabilities;
  findings(): Finding[];
  /** Undefined where the node can store and restore memory. @param what the request, for example "a pause with memory" */
  memoryRefusal(what: string): AppError | undefined;
  /** Probes again whenever the fingerprint has changed. */
  start(): void;
  stop(): Promise<void>;
}

export interface CapabilityWatchDeps {
  readonly probe: () => Promise<Capabilities>;
  /** Changes with what the probe depends on. */
  readonly fingerprint: () => Promise<string>;
  /** The capabilities have changed. */
  readonly onChange: () => void;
  readonly log: Log;
  /** For tests. */
  readonly everyMs?: number;
}

export async function watchCapabilities(deps: CapabilityWatchDeps): Promise<CapabilityWatch> {
  const { log, everyMs = EVERY_MS } = deps;
  const state = { fingerprint: await deps.fingerprint(), capabilities: await deps.probe() };
  let rounds: Loop | undefined;
  const show = (message: string) => log.info({ version: VERSION, commit: COMMIT, ...state.capabilities }, message);
  show("capabilities of this node");
  const warn = () => {
    for (const finding of findingsOf(state.capabilities)) log.warn(finding, finding.problem);
  };
  warn();

  const round = async () => {
    const fingerprint = await deps.fingerprint();
    if (fingerprint === state.fingerprint) return;
    // Read before the probe: what changes meanwhile is found in the next round.
    const capabilities = await deps.probe();
    Object.assign(state, { fingerprint, capabilities });
    show("the capabilities of this node were probed again");
    warn();
    deps.onChange();
  };

  return {
    now: () => state.capabilities,
    findings: () => findingsOf(state.capabilities),
    memoryRefusal(what) {
      const { memorySnapshots, detail } = state.capabilities;
      if (memorySnapshots) return undefined;
      return memoryRefusal(what, noMemorySnapshots(detail["memorySnapshots"] ?? "unknown"));
    },
    start: () => void (rounds ??= loop({ name: "capabilities", everyMs, log }, round)),
    async stop() {
      await rounds?.stop();
    },
  };
}

/** Pure. */
export function findingsOf({ memorySnapshots, lazyPages, diskLimit, detail }: Capabilities): Finding[] {
  const why = (name: string) => detail[name] ?? "unknown";
  return [
    ...(memorySnapshots ? [] : [noMemorySnapshots(why("memorySnapshots"))]),
    ...(memorySnapshots && lazyPages === false ? [noLazyPages(why("lazyPages"))] : []),
    ...(diskLimit ? [] : [noOwnDisks(why("diskLimit"))]),
  ];
}
