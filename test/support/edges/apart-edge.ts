/** The edge program in the test's own process, beside an orchestrator of this machine. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EdgeConfig } from "../../../orchestrator/edge/program/config.ts";
import { startEdgeProgram } from "../../../orchestrator/edge/program/start.ts";
import { edgeToken } from "../../../shared/agent-api/joining/node-tokens.ts";
import { readConfig } from "../../../shared/program/config.ts";
import type { Log } from "../../../shared/program/log.ts";

export interface ApartEdge {
  readonly url: string;
  readonly statusUrl: string;
  stop(): Promise<void>;
}

export interface ApartEdgeOptions {
  /** One or several, comma-separated. */
  readonly orchestratorUrl: string;
  /** Of the orchestrator; absent: the edge joins with the token. */
  readonly nodeKey?: string;
  readonly joinToken?: string;
  readonly log: Log;
  /** 0 or absent: any free port. */
  readonly edgePort?: number;
  readonly machineId?: string;
  /** How long requests wait for an orchestrator. Default: as long as the slowest machine needs. */
  readonly askMs?: number;
  /** An empty directory that the test removes itself; absent: one for this edge. */
  readonly stateDir?: string;
}

export async function startApartEdge(options: ApartEdgeOptions): Promise<ApartEdge> {
  const { log, nodeKey, joinToken, edgePort = 0, machineId = "fake-machine" } = options;
  const edgeStateDir = options.stateDir ?? (await mkdtemp(join(tmpdir(), "svc-edge-")));
  const config: EdgeConfig = {
    ...readConfig(EdgeConfig, {}),
    orchestratorUrl: options.orchestratorUrl,
    edgePort,
    edgeStatusPort: 0,
    edgeStateDir,
    edgeAskMs: options.askMs ?? 60_000,
    ...(nodeKey === undefined ? {} : { edgeToken: edgeToken(nodeKey) }),
    ...(joinToken === undefined ? {} : { joinToken }),
  };
  const program = await startEdgeProgram(config, { log, now: Date.now, random: Math.random, machineId });
  return {
    url: program.url ?? "",
    statusUrl: program.statusUrl,
    async stop() {
      await program.stop();
      if (options.stateDir === undefined) await rm(edgeStateDir, { recursive: true, force: true });
    },
  };
}
