/** Converts a sandbox record to the bodies that the API answers. Pure. */

import type { NetworkOptions } from "../../shared/api/network.ts";
import type { ListedSandbox, Sandbox, SandboxDetail, StartResult } from "../../shared/api/sandboxes/sandbox-shapes.ts";
import type { Place } from "../../shared/api/stored/place.ts";
import { defined } from "../../shared/defined.ts";
import { answer, type Complete } from "../../shared/http/answer.ts";
import { toBody } from "../../shared/http/errors.ts";
import type { Seeds } from "../base/keys/seeds.ts";
import { iso } from "../forms/time.ts";
import { endedAtOf, shown, storedBytes } from "../lifecycle/record-state.ts";
import type { StartOutcome } from "../lifecycle/start/launch.ts";
import type { ListedRecord, SandboxRecord } from "../store/sandboxes/record.ts";

export interface ViewDeps {
  readonly seeds: Seeds;
  /** Base domain; null when there is none. */
  readonly domain: string | null;
}

/** The deprecated field `clientID`, which the contract still requires: a constant. */
const CLIENT_ID = "6532622b";

export function toSandbox(record: SandboxRecord, { seeds, domain }: ViewDeps): Sandbox {
  const secured = record.network?.allowPublicTraffic === false;
  return answer<Sandbox>({
    templateID: record.templateId,
    sandboxID: record.id,
    clientID: CLIENT_ID,
    envdVersion: record.envdVersion,
    alias: record.alias,
    envdAccessToken: seeds.envdToken(record),
    trafficAccessToken: secured ? seeds.trafficToken(record) : null,
    domain,
  });
}

/** Of one of several sandboxes that a request starts. */
export function toResult(outcome: StartOutcome, deps: ViewDeps): StartResult {
  return "error" in outcome ? { error: toBody(outcome.error) } : { sandbox: toSandbox(outcome.record, deps) };
}

export function toListed(record: ListedRecord): ListedSandbox {
  return answer<ListedSandbox>(listed(record));
}

function listed(record: ListedRecord): Complete<ListedSandbox> {
  const endedAt = endedAtOf(record);
  return {
    templateID: record.templateId,
    alias: record.alias,
    sandboxID: record.id,
    clientID: CLIENT_ID,
    startedAt: iso(record.startedAt),
    endAt: iso(endedAt ?? record.endAt),
    cpuCount: record.cpuCount,
    memoryMB: record.memoryMB,
    diskSizeMB: record.diskSizeMB,
    state: shown(record) ?? (endedAt === undefined ? "running" : "ended"),
    envdVersion: record.envdVersion,
    metadata: record.metadata,
    volumeMounts: record.volumeMounts.map(({ name, path }) => ({ name, path })),
    storedBytes: storedBytes(record),
    endedAt: endedAt === undefined ? undefined : iso(endedAt),
    endReason: record.end?.reason,
    exitCode: record.end?.exitCode,
    endDetail: record.end?.detail,
  };
}

/**
 * @param mayChange false: the caller may only read the sandbox, and gets nothing that opens it or that its rules keep secret
 * @param place of a paused one
 */
export function toDetail(
  record: SandboxRecord,
  { seeds, domain }: ViewDeps,
  { mayChange, place }: { readonly mayChange: boolean; readonly place: Place | undefined },
): SandboxDetail {
  return answer<SandboxDetail>({
    ...listed(record),
    envdAccessToken: mayChange && endedAtOf(record) === undefined ? seeds.envdToken(record) : undefined,
    domain,
    allowInternetAccess: record.internet ?? null,
    network: record.network === undefined ? undefined : shownNetwork(record.network, mayChange),
    iam: record.iam,
    lifecycle: { autoResume: record.autoResume, onTimeout: record.onTimeout },
    place,
  });
}

/** The options without the proxy's password; the headers of rules only for callers that may set them. */
function shownNetwork(network: NetworkOptions, withRules: boolean): NonNullable<SandboxDetail["network"]> {
  const { allowOut, denyOut, egressProxy, rules, allowPublicTraffic, maskRequestHost, httpsPorts } = network;
  return answer<NonNullable<SandboxDetail["network"]>>({
    allowOut,
    denyOut,
    egressProxy: egressProxy ? shownProxy(egressProxy) : egressProxy,
    rules: withRules ? rules : undefined,
    allowPublicTraffic,
    maskRequestHost,
    httpsPorts,
  });
}

function shownProxy({ address, username }: NonNullable<NetworkOptions["egressProxy"]>) {
  return { address, ...defined({ username }) };
}
