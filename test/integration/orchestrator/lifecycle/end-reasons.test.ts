/** Every path to the end of a sandbox sets one reason, which its record, its event and later requests have. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ListedSandbox, SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";

const HOUR_MS = 3_600_000;

let cluster: Cluster;

const { create, paused } = sandboxesOn(() => cluster);
const read = async (id: string) => {
  const answer = await cluster.ask("GET", `/sandboxes/${id}?ended=true`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body as SandboxDetail;
};
const gone = async (id: string) => {
  await expect.poll(async () => (await cluster.ask("GET", `/sandboxes/${id}`)).status).toBe(404);
};
const executionOf = (id: string) =>
  [...cluster.agent.live.values()].find(({ body }) => body.sandboxId === id)?.executionId ?? "";
const listed = async (query: string) => {
  const answer = await cluster.ask("GET", `/v2/sandboxes?${query}`);
  expect(answer.status, answer.text).toBe(200);
  return { ids: (answer.body as ListedSandbox[]).map(({ sandboxID }) => sandboxID), answer };
};

/** Ends a sandbox and returns its id. */
type Path = () => Promise<string>;

describe("every path to an end", () => {
  beforeAll(async () => {
    cluster = await startCluster({
      config: {
        missingGraceMs: 50,
        orphanGraceMs: 50,
        pausedKeepHours: 1,
        nodeTimeoutMs: 600_000,
        nodeLostMs: 600_000,
      },
      // The node sends no report by the clock: what it says of an exit might come later than two of them.
      agent: { heartbeatMs: 0 },
    });
  });
  afterAll(() => cluster.stop());

  const reported =
    (...report: Parameters<Cluster["agent"]["reportExit"]> extends [string, ...infer Rest] ? Rest : never): Path =>
    async () => {
      const { sandboxID } = await create();
      await cluster.agent.reportExit(executionOf(sandboxID), ...report);
      return sandboxID;
    };

  const paths: Record<string, readonly [Path, object]> = {
    "a kill request": [
      async () => {
        const { sandboxID } = await create();
        await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
        return sandboxID;
      },
      { endReason: "request" },
    ],
    "a kill of a paused sandbox": [
      async () => {
        const { sandboxID } = await paused();
        await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
        return sandboxID;
      },
      { endReason: "request" },
    ],
    "a timeout": [
      async () => {
        const { sandboxID } = await create();
        await cluster.ask("POST", `/sandboxes/${sandboxID}/timeout`, { body: { timeout: 0 } });
        return sandboxID;
      },
      { endReason: "timeout" },
    ],
    "a timeout that the node acts on": [reported("expired"), { endReason: "timeout" }],
    "an exit of init": [reported("exited", { exitCode: 3 }), { endReason: "exited", exitCode: 3 }],
    "a full memory": [
      reported("out_of_memory", { exitCode: 137, detail: "the kernel killed envd" }),
      { endReason: "out_of_memory", exitCode: 137, endDetail: "the kernel killed envd" },
    ],
    "a full memory that an older agent reports": [reported("oom"), { endReason: "out_of_memory" }],
    "a full disk": [reported("disk_full"), { endReason: "disk_full" }],
    "a removed container": [reported("removed"), { endReason: "removed" }],
    "a node that has lost it": [
      async () => {
        const { sandboxID } = await create();
        cluster.agent.live.delete(executionOf(sandboxID));
        const look = async () => {
          await cluster.agent.beat();
          return (await cluster.ask("GET", `/sandboxes/${sandboxID}`)).status;
        };
        await expect.poll(look).toBe(404);
        return sandboxID;
      },
      { endReason: "lost" },
    ],
    "too long a pause": [
      async () => {
        const { sandboxID } = await paused();
        await cluster.database.query(
          "update sandboxes set end_at = ? where id = ?",
          Date.now() - 2 * HOUR_MS,
          sandboxID,
        );
        await cluster.restart();
        await cluster.agent.beat();
        return sandboxID;
      },
      { endReason: "expired" },
    ],
    "an operator's kill of a project": [
      async () => {
        const { sandboxID } = await create();
        const headers = { "x-admin-token": ADMIN_TOKEN };
        await cluster.ask("POST", `/admin/teams/${cluster.teamId}/sandboxes/kill`, { key: null, headers });
        return sandboxID;
      },
      { endReason: "admin" },
    ],
  };

  test.each(Object.entries(paths))(
    "%s sets one reason, in the record, the event and the 404",
    async (_name, [path, end]) => {
      const before = Date.now();
      const id = await path();
      await gone(id);
      await expect.poll(() => read(id)).toMatchObject({ state: "ended", ...end });
      const { endedAt = "", endAt, startedAt, exitCode, endDetail, ...detail } = await read(id);
      expect({ exitCode, endDetail }).toEqual(pick(end));
      expect(Date.parse(endedAt)).toBeGreaterThanOrEqual(before - 2);
      expect(Date.parse(endedAt)).toBeGreaterThanOrEqual(Date.parse(startedAt));
      expect(endAt).toBe(endedAt);
      expect(detail.envdAccessToken).toBeUndefined();
      // A record reads as ended from the kill on, and its event is written when the node has given everything back.
      const killed = async () => {
        const events = (await cluster.ask("GET", `/events/sandboxes/${id}`)).body as {
          type: string;
          eventData: unknown;
        }[];
        return events.filter(({ type }) => type === "sandbox.lifecycle.killed");
      };
      await expect.poll(killed).toMatchObject([{ eventData: { reason: detail.endReason } }]);
      const answer = await cluster.ask("GET", `/sandboxes/${id}`);
      expect(answer.body).toMatchObject({ code: 404, error_code: "sandbox_ended" });
      expect((answer.body as Error).message).toMatch(`Sandbox "${id}" ended at ${endedAt}: `);
    },
  );

  const pick = (end: object) => {
    const { exitCode, endDetail } = end as { exitCode?: number; endDetail?: string };
    return { exitCode, endDetail };
  };

  test("a start that fails has its reason in the record", async () => {
    cluster.agent.onStart = () => {
      throw new AppError("internal", "the node cannot");
    };
    const answer = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    expect(answer.status).toBe(500);
    cluster.agent.onStart = (_request, run) => run();
    const { answer: list } = await listed("state=ended&limit=1");
    expect(list.body).toMatchObject([{ state: "ended", endReason: "create_failed" }]);
    expect((list.body as ListedSandbox[])[0]?.endDetail).toContain("Failed to place sandbox");
  });

  test("an exit that is reported during a kill changes nothing", async () => {
    const { sandboxID } = await create();
    const executionId = executionOf(sandboxID);
    await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
    await cluster.agent.reportExit(executionId, "exited", { exitCode: 9 });
    expect(await read(sandboxID)).toMatchObject({ endReason: "request" });
  });
});
