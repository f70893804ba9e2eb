/** Converts a sandbox record to the bodies that the API answers. Pure. */

import type { NetworkOptions } from "../../shared/api/network.ts";
import type { ListedSandbox, Sandbox, SandboxDetail } from "../../shared/api/sandboxes/sandbox-shapes.ts";
import { answer, type Complete } from "../../shared/http/answer.ts";
import { envdToken, trafficToken } from "../../shared/ids.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import { shown, storedBytes } from "./lifecycle/paused.ts";

export interface ViewDeps {
  readonly seed: string;
  /** Base domain; null when there is none. */
  readonly domain: string | null;
}

/** The deprecated field `clientID`, which the contract still requires: a constant. */
const CLIENT_ID = "6532622b";

export function toSandbox(record: SandboxRecord, { seed, domain }: ViewDeps): Sandbox {
  const secured = record.network?.allowPublicTraffic === false;
  return answer<Sandbox>({
    templateID: record.templateId,
    sandboxID: record.id,
    clientID: CLIENT_ID,
    envdVersion: record.envdVersion,
    alias: record.alias,
    envdAccessToken: envdToken(seed, record.id),
    trafficAccessToken: secured ? trafficToken(seed, record.id) : null,
    domain,
  });
}

export function toListed(record: SandboxRecord): ListedSandbox {
  return answer<ListedSandbox>(listed(record));
}

function listed(record: SandboxRecord): Complete<ListedSandbox> {
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
    volumeMounts: [],
    storedBytes: storedBytes(record),
    endedAt: endedAt === undefined ? undefined : iso(endedAt),
    endReason: record.end?.reason,
    exitCode: record.end?.exitCode,
    endDetail: record.end?.detail,
  };
}

export function toDetail(record: SandboxRecord, { seed, domain }: ViewDeps): SandboxDetail {
  return answer<SandboxDetail>({
    ...listed(record),
    envdAccessToken: endedAtOf(record) === undefined ? envdToken(seed, record.id) : undefined,
    domain,
    allowInternetAccess: record.internet ?? null,
    network: record.network === undefined ? undefined : shownNetwork(record.network),
    lifecycle: { autoResume: record.autoResume, onTimeout: record.onTimeout },
  });
}

/** The options without the proxy's password. */
function shownNetwork(network: NetworkOptions): NonNullable<SandboxDetail["network"]> {
  const { egressProxy, ...rest } = network;
  if (egressProxy === undefined) return rest;
  if (egressProxy === null) return { ...rest, egressProxy: null };
  const { address, username } = egressProxy;
  return { ...rest, egressProxy: { address, ...(username === undefined ? {} : { username }) } };
}

/** When the sandbox ended; while it is being killed, when that began. Undefined: it has not ended. */
export function endedAtOf({ state, endedAt, endAt }: SandboxRecord): number | undefined {
  if (state === "killing") return endAt;
  return state === "gone" ? (endedAt ?? endAt) : undefined;
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}
