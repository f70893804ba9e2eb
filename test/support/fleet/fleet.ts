/**
 * Finds the fleet that `scripts/fleet up` has left running: two orchestrators on PostgreSQL, three nodes and two edges, each an
 * instance of this machine.
 */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { SandboxOpts } from "e2b";
import { checkout, type Platform, readEnvFile } from "../platform/platform.ts";
import { pidOf, type Service, settingOf } from "../platform/programs.ts";

/** One program of the fleet. An instance as a platform: the API of an orchestrator, the traffic of an edge, and its own directories. */
export interface Member {
  readonly program: Service;
  readonly platform: Platform;
}

export interface FleetNode extends Member {
  readonly id: string;
}

export interface Fleet {
  readonly orchestrators: readonly Member[];
  readonly nodes: readonly FleetNode[];
  readonly edges: readonly Member[];
  /** The platform as its clients see it, through one of the orchestrators and one of the edges. */
  through(orchestrator: number, edge?: number): Platform;
  /** The same for the SDK. */
  sdk(orchestrator: number, edge?: number): Required<Pick<SandboxOpts, "apiKey" | "apiUrl" | "sandboxUrl">>;
}

/** As `scripts/fleet` names them. */
const INSTANCES = { orchestrator: ["fo1", "fo2"], agent: ["fn1", "fn2", "fn3"], edge: ["fe1", "fe2"] } as const;
/** What it has beside its programs. */
export const HOME = "/var/lib/svc-fleet";

/** Opens the fleet of this checkout, or that whose file SVC_FLEET_ENV names. Throws when no fleet was brought up. */
export function openFleet(): Fleet {
  const file = process.env.SVC_FLEET_ENV ?? `${checkout}.svc/fleet.env`;
  if (!existsSync(file)) throw new Error(`no fleet: ${file} does not exist; run ./scripts/fleet up`);
  const values = readEnvFile(file);
  const need = (name: string) => {
    const value = values.get(name);
    if (value === undefined || value === "") throw new Error(`${file} has no ${name}`);
    return value;
  };
  const apis = need("SVC_API_URLS").split(",");
  const doors = need("SVC_SANDBOX_URLS").split(",");
  const apiKey = need("E2B_API_KEY");
  const adminToken = need("SVC_ADMIN_TOKEN");
  const platform = (instance: string, orchestrator = 0, edge = 0): Platform => ({
    instance,
    apiUrl: apis[orchestrator] ?? "",
    sandboxUrl: doors[edge] ?? "",
    apiKey,
    adminToken,
    paths: { run: `/run/svc-${instance}`, state: `/var/lib/svc-${instance}`, etc: `/etc/svc-${instance}` },
  });
  const through = (orchestrator: number, edge = orchestrator) =>
    platform(INSTANCES.orchestrator[orchestrator % apis.length] ?? "", orchestrator % apis.length, edge % doors.length);
  const sdk = (orchestrator: number, edge = orchestrator) => {
    const { apiUrl, sandboxUrl } = through(orchestrator, edge);
    return { apiKey, apiUrl, sandboxUrl };
  };
  // What reads the SDK's own settings goes through the first of each.
  Object.assign(process.env, {
    E2B_API_KEY: apiKey,
    E2B_API_URL: apis[0],
    E2B_SANDBOX_URL: doors[0],
  });
  return {
    orchestrators: INSTANCES.orchestrator.map((_, index) => ({
      program: "orchestrator",
      platform: through(index),
    })),
    nodes: INSTANCES.agent.map((instance) => {
      const one = platform(instance);
      return { program: "agent", platform: one, id: settingOf(one, "agent", "SVC_NODE_ID") };
    }),
    edges: INSTANCES.edge.map((instance, index) => ({ program: "edge", platform: platform(instance, 0, index) })),
    through,
    sdk,
  };
}

/** Every program of the fleet. */
export function members({ orchestrators, nodes, edges }: Fleet): readonly Member[] {
  return [...orchestrators, ...nodes, ...edges];
}

export function nameOf({ program, platform }: Member): string {
  return `${program} of ${platform.instance}`;
}

export function memberPid({ platform, program }: Member): Promise<number> {
  return pidOf(platform, program);
}

/** The process that starts a program again; undefined where systemd does. */
export async function supervisorPid({ platform, program }: Member): Promise<number | undefined> {
  const text = await readFile(`${platform.paths.run}/${program}.supervisor.pid`, "utf8").catch(() => undefined);
  return text === undefined ? undefined : Number(text.trim());
}

/** The PostgreSQL server's first process. */
export async function postgresPid(): Promise<number> {
  const text = await readFile(`${HOME}/postgres/data/postmaster.pid`, "utf8");
  return Number(text.split("\n", 1)[0]);
}
