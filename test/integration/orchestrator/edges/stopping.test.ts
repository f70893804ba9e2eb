/** An agent or an edge ends under a request, as for an upgrade, while the sandbox runs on: no client may take it for gone. */

import { request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { type Fleet, message, openFleet } from "../edge/two-nodes.ts";

const MAY_HAVE = "runs on and may have carried the request out";
const CHANGING: readonly RequestInit[] = [{ method: "POST" }, { method: "POST", body: "once" }, { method: "DELETE" }];

/** The records say that the sandbox is where it was. */
const still = ({ first: { route } }: Fleet) => ({ is: "running" as const, route });

async function underWay(how: RequestInit, options: Parameters<typeof openFleet>[0] = {}) {
  const fleet = await openFleet(options, { autoResume: (at) => Promise.resolve(still(at)), find: still });
  const answer = fleet.visit(how);
  await expect.poll(() => fleet.first.seen).toHaveLength(1);
  return { fleet, answer };
}

describe.each([{ hasEveryRemoval: true }, { hasEveryRemoval: false }])(
  "the agent of the node stops under a request of an edge with %o",
  (options) => {
    test.each(CHANGING)("that may change something (%o): its client learns that it may have been done", async (how) => {
      const { fleet, answer } = await underWay(how, options);
      await fleet.door.stopNode();
      const { status, text, retryAfter } = await answer;
      expect([status, retryAfter, fleet.first.seen]).toEqual([503, null, [how.method]]);
      expect(message(text)).toContain(MAY_HAVE);
    });

    test("that may be sent twice: it looks for its node again", async () => {
      const { fleet, answer } = await underWay({}, options);
      await fleet.door.stopNode();
      const { status, text } = await answer;
      expect([status, message(text)]).toEqual([503, "The sandbox cannot be reached at the moment"]);
    });
  },
);

describe.each([{ sameHost: true }, { sameHost: false }])("the edge stops under a request (%o)", (options) => {
  test.each(CHANGING)("that may change something (%o): its client learns that it may have been done", async (how) => {
    const { fleet, answer } = await underWay(how, options);
    await fleet.door.edge.stop();
    const { status, text, retryAfter } = await answer;
    expect([status, retryAfter]).toEqual([503, null]);
    expect(message(text)).toContain(MAY_HAVE);
  });

  test("that may be sent twice: its client is told to send it again", async () => {
    const { fleet, answer } = await underWay({}, options);
    await fleet.door.edge.stop();
    const { status, retryAfter } = await answer;
    expect([status, retryAfter]).toEqual([503, "1"]);
  });
});

describe("an edge of an earlier version passes the proxy's answer on, which", () => {
  async function atStop(method: string, { door, first: { route }, port }: Fleet, reaches: boolean) {
    const headers = {
      "svc-node-token": "node-token-of-these-tests",
      "svc-sandbox-id": route.sandboxId,
      "svc-execution-id": route.executionId,
      // Nothing listens on the other port, and the proxy dials it again for a second.
      "svc-sandbox-port": String(reaches ? port : 9),
    };
    const request = httpRequest(door.nodeProxyUrl, { method, headers }).end();
    const answered = new Promise<{ status: number | undefined; error: unknown; reason: unknown; text: string }>(
      (resolve, reject) => {
        request.once("error", reject);
        request.once("response", (response) => {
          const { statusCode: status, headers: said } = response;
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => {
            text += chunk;
          });
          response.once("end", () =>
            resolve({ status, error: said["svc-proxy-error"], reason: said["svc-proxy-reason"], text }),
          );
        });
      },
    );
    answered.catch(() => undefined);
    return answered;
  }

  test("says that the sandbox may have carried the request out", async () => {
    const fleet = await openFleet({});
    const answer = atStop("POST", fleet, true);
    await expect.poll(() => fleet.first.seen).toHaveLength(1);
    await fleet.door.stopNode();
    const { text, ...rest } = await answer;
    expect(rest).toEqual({ status: 503, error: "stopping", reason: "under-way" });
    expect(JSON.parse(text)).toMatchObject({ sandboxId: fleet.first.route.sandboxId, code: 503 });
    expect(message(text)).toContain(MAY_HAVE);
  });

  test("says that it has not reached the sandbox", async () => {
    const unreached = async () => {
      const fleet = await openFleet({});
      const answer = atStop("POST", fleet, false);
      await new Promise((resolve) => setTimeout(resolve, 150));
      await fleet.door.stopNode();
      const { text, ...rest } = await answer;
      return [rest, text.includes("has not reached the sandbox: send it again")];
    };
    // On a busy machine the stop may come after that second.
    await expect.poll(unreached).toEqual([{ status: 503, error: "stopping", reason: undefined }, true]);
  });

  test("lets it send a request again that may reach its sandbox twice", async () => {
    const fleet = await openFleet({});
    const answer = atStop("GET", fleet, true);
    await expect.poll(() => fleet.first.seen).toHaveLength(1);
    await fleet.door.stopNode();
    expect(await answer).toMatchObject({ status: 421, error: "removed", reason: "under-way" });
  });
});
