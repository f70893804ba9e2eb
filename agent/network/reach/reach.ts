/**
 * Knows whether packets of sandboxes come through the host's rules: probes once a minute and after changes of the firewall or of
 * forwarding, logs each change of the answer, and refuses sandboxes that need the network where the operator wants that.
 */

import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../../../shared/http/errors.ts";
import { allowsAnything, type EgressPolicy, needsEgressProcess } from "../../../shared/policy/egress-policy.ts";
import { type Finding, findingText } from "../../../shared/program/finding.ts";
import type { Log } from "../../../shared/program/log.ts";
import { type Loop, loop } from "../../../shared/program/loop.ts";
import type { Plan } from "../addresses.ts";
import { findingOf } from "./findings.ts";
import type { ReachProbe } from "./host-probe.ts";
import { WAYS, type Way } from "./probe-table.ts";

const EVERY_MS = 60_000;
/** Shortest time from the end of a probe to the next one: a tool that changes many rules causes one probe, not many. */
const APART_MS = 2_000;
/** A tool that replaces its rules takes them away first. */
const SETTLES_MS = 500;
/**
 * From a change of the host's rules until the log, `/readyz`, `GET /nodes`, the metrics and `network/check` have the new answer,
 * also on a busy machine (docs/operating/network.md). It covers the waits above, two probes, a trace and a report.
 */
export const SAID_WITHIN_MS = 15_000;

interface Flow {
  readonly protocol: "tcp" | "udp";
  /** A name that the sandbox looks up first. */
  readonly named: boolean;
}

export interface Reach {
  /** What stands in the way now; empty: nothing that a probe has found. */
  findings(): Finding[];
  /** What stands in the way of a flow under this policy; undefined: nothing. */
  problemOf(policy: EgressPolicy, flow: Flow): Finding | undefined;
  /** Why a new sandbox with this policy cannot begin; undefined: it can. */
  refusal(policy: EgressPolicy): AppError | undefined;
  /** The node refuses sandboxes that need the network now. */
  refuses(): boolean;
  /** For metrics: each way that was tried last, and whether packets come through. */
  ways(): ReadonlyMap<Way, boolean>;
  /** Starts the probes. */
  start(): void;
  /** Probes soon, because the firewall or a setting has changed. */
  wake(): void;
  stop(): Promise<void>;
}

export interface ReachDeps {
  readonly plan: Pick<Plan, "network">;
  /** Undefined: the operator wants no probes. */
  readonly probe: ReachProbe | undefined;
  /** Refuse new sandboxes that need the network while no packet of one leaves the host. */
  readonly refuse: boolean;
  readonly egressWorks: () => boolean;
  /** The answer has changed. */
  readonly onChange: () => void;
  readonly log: Log;
  /** For tests. */
  readonly everyMs?: number;
}

export function createReach(deps: ReachDeps): Reach {
  const { plan, egressWorks, log, everyMs = EVERY_MS } = deps;
  const found = new Map<Way, Finding | undefined>();
  const state = { prepared: false, endedAt: Number.NEGATIVE_INFINITY, woken: false, offline: false };

  const note = (way: Way, finding: Finding | undefined): boolean => {
    const before = found.get(way);
    found.set(way, finding);
    if (finding !== undefined && finding.evidence !== before?.evidence)
      log.error(finding, "packets of sandboxes are stopped on this node");
    else if (finding === undefined && before !== undefined)
      log.info({ id: before.id }, "packets of sandboxes come through again");
    else return false;
    return true;
  };

  const round = async (probe: ReachProbe, signal: AbortSignal) => {
    const woken = state.woken;
    state.woken = false;
    const waitMs = Math.max(woken ? SETTLES_MS : 0, state.endedAt + APART_MS - performance.now());
    if (waitMs > 0) await delay(waitMs, undefined, { signal });
    try {
      if (!state.prepared) await probe.prepare();
      state.prepared = true;
      const { ways, offline } = await probe.try(egressWorks(), signal);
      if (offline && !state.offline)
        log.info("the host has no route to the outside: whether packets of sandboxes leave it is not known");
      state.offline = offline;
      const changes = WAYS.map((way) => (ways.has(way) ? note(way, finding(way, ways)) : found.delete(way) && false));
      if (changes.includes(true)) deps.onChange();
    } catch (error) {
      // Another tool may have removed the link or its namespace.
      state.prepared = false;
      throw error;
    } finally {
      state.endedAt = performance.now();
    }
  };

  const finding = (way: Way, ways: Awaited<ReturnType<ReachProbe["try"]>>["ways"]) => {
    const obstacle = ways.get(way);
    return obstacle === undefined ? undefined : findingOf(way, obstacle, plan);
  };
  let rounds: Loop | undefined;
  const findings = () => [...found.values()].filter((one) => one !== undefined);

  return {
    findings,
    problemOf(policy, { protocol, named }) {
      const resolver = named ? found.get("resolver") : undefined;
      const redirected = needsEgressProcess(policy) && protocol === "tcp";
      return resolver ?? found.get(redirected ? "egress" : "forward");
    },
    refusal(policy) {
      const [first] = findings();
      if (!deps.refuse || first === undefined || !allowsAnything(policy)) return undefined;
      return new AppError("unavailable", `the node takes no sandbox that needs the network: ${findingText(first)}`);
    },
    refuses: () => deps.refuse && findings().length > 0,
    ways: () => new Map([...found].map(([way, one]) => [way, one === undefined])),
    start() {
      const { probe } = deps;
      if (probe !== undefined) rounds ??= loop({ name: "reach", everyMs, log }, (signal) => round(probe, signal));
    },
    wake() {
      state.woken = true;
      rounds?.wake();
    },
    async stop() {
      await rounds?.stop();
      if (state.prepared) await deps.probe?.remove();
    },
  };
}
