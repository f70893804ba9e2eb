/** Measures a start that no pool can serve, beside `docker run -d` with the same limits. */

import { randomUUID } from "node:crypto";
import { agentApi } from "../../shared/agent-api/routes.ts";
import { connect } from "../../shared/http/client.ts";
import { OPEN } from "../../shared/policy/egress-policy.ts";
import { api } from "../support/platform/platform.ts";
import { settingOf } from "../support/platform/programs.ts";
import { dockerRun, IMAGE } from "./baselines/docker.ts";
import { type Bench, timed } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

// An entry of the pool gets the processors and memory of its sandbox when it is claimed, but not another disk: no template asks for
// this one, of the default size.
const RESOURCES = { cpuCount: 2, memoryMB: 1024, diskSizeMB: 0 };

export async function coldStart({ platform, quick, say }: Bench): Promise<readonly Row[]> {
  const port = settingOf(platform, "agent", "SVC_AGENT_PORT");
  const token = settingOf(platform, "agent", "SVC_ORCHESTRATOR_TOKEN");
  const agent = connect(agentApi, {
    url: `http://127.0.0.1:${port}`,
    name: "agent",
    headers: { authorization: `Bearer ${token}` },
  });
  const templates = (await api(platform, "GET", "/templates")).json as Template[];
  const base = templates.find(({ aliases }) => aliases.includes("base"));
  if (base === undefined) throw new Error("there is no base template");
  const build = { templateId: base.templateID, buildId: base.buildID, image: IMAGE };
  const rounds = quick ? 3 : 15;
  const mine: number[] = [];
  const docker: number[] = [];
  const started: (() => Promise<void>)[] = [];
  try {
    for (let round = 0; round < rounds; round++) {
      say(`cold start: ${round + 1} of ${rounds}`);
      const params = { executionId: randomUUID() };
      const sandboxId = `i${params.executionId.replaceAll("-", "").slice(0, 19)}`;
      const body = { sandboxId, build, resources: RESOURCES, egress: OPEN, envs: {} };
      const rest = { accessToken: randomUUID(), endAt: Date.now() + 600_000, onTimeout: "kill" } as const;
      const begun = performance.now();
      const { warm } = await agent.call.startExecution({ params, body: { ...body, ...rest } });
      mine.push(performance.now() - begun);
      await agent.call.stopExecution({ params });
      if (warm) throw new Error("a start that was to be cold took a container of the pool");
      docker.push(
        await timed(async () => {
          const container = await dockerRun();
          started.push(() => container.remove());
        }),
      );
      await Promise.all(started.splice(0).map((remove) => remove()));
    }
  } finally {
    await Promise.all(started.splice(0).map((remove) => remove()));
    await agent.close();
  }
  return [
    row({
      name: "cold create, envd answering",
      unit: "ms",
      ours: summarise(mine),
      baseline: { name: "docker run -d", ...summarise(docker) },
      budgets: [],
    }),
  ];
}

interface Template {
  readonly templateID: string;
  readonly buildID: string;
  readonly aliases: readonly string[];
}
