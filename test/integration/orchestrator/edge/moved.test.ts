/** A sandbox is taken from its node: where a request goes that finds it gone there, and one that was under way. */

import { request as httpRequest } from "node:http";
import { createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { OrchestratorAway, type Whereabouts } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { listening } from "../../../support/peers/listening.ts";
import { type Answers, type Fleet, message, NOT_FOUND, openFleet, running } from "./two-nodes.ts";

describe("a request that finds its sandbox gone from the node", () => {
  test.each(["GET", "POST", "DELETE"])("goes to where the store has it (%s)", async (method) => {
    const fleet = await openFleet({ hasEveryRemoval: false }, { autoResume: (at) => Promise.resolve(running(at)) });
    await fleet.door.removeOnNode(fleet.first.route.sandboxId);
    expect(await fleet.visit({ method })).toMatchObject({ status: 200, text: "from elsewhere" });
    expect([fleet.first.seen, fleet.second.seen]).toEqual([[], [method]]);
  });

  test("is not dialled past the node while another orchestrator may have taken the sandbox away", async () => {
    const fleet = await openFleet(
      { sameHost: true, hasEveryRemoval: false },
      { autoResume: (at) => Promise.resolve(running(at)) },
    );
    await fleet.door.removeOnNode(fleet.first.route.sandboxId);
    expect((await fleet.visit()).text).toBe("from elsewhere");
    expect(fleet.first.seen).toEqual([]);
  });

  test("is answered at once by an edge that has every removal", async () => {
    let asked = 0;
    const autoResume = (at: Fleet) => {
      asked++;
      return Promise.resolve(running(at));
    };
    const fleet = await openFleet({}, { autoResume });
    await fleet.door.removeOnNode(fleet.first.route.sandboxId);
    const { status, text } = await fleet.visit();
    expect([status, message(text), asked]).toEqual([502, NOT_FOUND, 0]);
  });

  test("goes there once more when the pause of its sandbox has failed", async () => {
    const back = ({ door, first: { route } }: Fleet) => {
      const { executionId, address, sandboxId } = route;
      door.nodeRoutes.set(sandboxId, { executionId, address, controlToken: "c" });
      return Promise.resolve({ is: "running" as const, route });
    };
    const fleet = await openFleet({ hasEveryRemoval: false }, { autoResume: back });
    await fleet.door.removeOnNode(fleet.first.route.sandboxId);
    const visiting = fleet.visit();
    await expect.poll(() => fleet.first.seen).toEqual(["GET"]);
    await fleet.door.removeOnNode(fleet.first.route.sandboxId);
    await visiting;
  });

  test.each(["GET", "POST"])(
    "asks where the sandbox is when its own orchestrator takes it away before it was reached (%s)",
    async (method) => {
      const fleet = await openFleet({}, { autoResume: (at) => Promise.resolve(running(at)) });
      // A machine that takes connections and does not greet.
      const silent = createServer();
      onTestFinished(() => void silent.close());
      const dialled = new Promise((resolve) => {
        silent.once("connection", (socket) => {
          onTestFinished(() => void socket.destroy());
          resolve(undefined);
        });
      });
      const proxyUrl = `https://127.0.0.1:${await listening(silent)}`;
      const { route } = fleet.first;
      fleet.door.routes.set(route.sandboxId, { ...route, proxyUrl });
      const visiting = fleet.visit({ method });
      await dialled;
      await fleet.door.remove(route.sandboxId, "paused");
      expect(await visiting).toMatchObject({ status: 200, text: "from elsewhere" });
    },
  );

  test.each<[Whereabouts, number]>([
    [{ is: "not_found" }, 502],
    [{ is: "paused", moving: true }, 503],
  ])("and has sent a body is told what the store says (%o)", async (whereabouts, status) => {
    const autoResume = () => Promise.resolve({ is: "not_found" as const });
    const fleet = await openFleet({ hasEveryRemoval: false }, { autoResume, find: () => whereabouts });
    await fleet.door.removeOnNode(fleet.first.route.sandboxId);
    expect((await fleet.visit({ method: "POST", body: "lost" })).status).toBe(status);
  });

  test("is told to come again where the records cannot be read", async () => {
    const autoResume = () => Promise.reject(new Error("the database is away"));
    const fleet = await openFleet({}, { autoResume });
    await fleet.door.remove(fleet.first.route.sandboxId, "paused");
    expect(await fleet.visit()).toMatchObject({ status: 503, retryAfter: "1" });
  });

  test("is not sent again and again to an execution that is not there", async () => {
    const stale = (at: Fleet) => Promise.resolve({ is: "running" as const, route: at.first.route });
    const fleet = await openFleet({ hasEveryRemoval: false }, { autoResume: stale });
    await fleet.door.removeOnNode(fleet.first.route.sandboxId);
    const { status, text } = await fleet.visit();
    expect([status, message(text)]).toEqual([502, NOT_FOUND]);
  });
});

describe.each([
  { by: "the node", remove: ({ door, first }: Fleet) => door.removeOnNode(first.route.sandboxId) },
  {
    by: "the edge's own orchestrator",
    remove: ({ door, first }: Fleet) => door.remove(first.route.sandboxId, "paused"),
  },
])("a request that is under way when its sandbox is taken away by $by", ({ remove }) => {
  const MAY_HAVE = "while the request was under way, and may have carried it out";

  async function interrupted(how: RequestInit, answers: Answers) {
    let resumed = 0;
    const autoResume = () => {
      resumed++;
      return Promise.resolve({ is: "not_found" as const });
    };
    const fleet = await openFleet({ hasEveryRemoval: false }, { autoResume, ...answers });
    const visiting = fleet.visit(how);
    await expect.poll(() => fleet.first.seen).toHaveLength(1);
    await remove(fleet);
    const answer = await visiting;
    expect(resumed).toBe(0);
    return { ...answer, second: fleet.second.seen };
  }

  test.each(["GET", "HEAD", "OPTIONS"])(
    "waits until the sandbox has been moved, and is sent again (%s)",
    async (method) => {
      const looks: Whereabouts[] = [{ is: "paused", moving: true }, { is: "transitioning" }];
      const { status, second } = await interrupted({ method }, { find: (fleet) => looks.shift() ?? running(fleet) });
      expect([status, second, looks]).toEqual([200, [method], []]);
    },
  );

  test.each([
    ["a method that may change something", { method: "DELETE" }],
    ["a body", { method: "POST", body: "once" }],
  ])("is never sent twice with %s, and its answer says what happened", async (_what, how) => {
    const { status, text, retryAfter, second } = await interrupted(how, { find: running });
    expect([status, retryAfter, second]).toEqual([503, null, []]);
    expect(message(text)).toContain(`The sandbox was moved to another node ${MAY_HAVE}`);
  });

  test("waits again when the sandbox is taken away a second time", async () => {
    let finds = 0;
    const find = (fleet: Fleet): Whereabouts => {
      const { route } = fleet.first;
      if (finds++ > 0) return running(fleet);
      // The first pause has failed.
      const { executionId, address, sandboxId } = route;
      fleet.door.nodeRoutes.set(sandboxId, { executionId, address, controlToken: "c" });
      return { is: "running", route };
    };
    const fleet = await openFleet({ hasEveryRemoval: false }, { find });
    const visiting = fleet.visit();
    await expect.poll(() => fleet.first.seen).toHaveLength(1);
    await remove(fleet);
    await expect.poll(() => fleet.first.seen).toHaveLength(2);
    await fleet.door.removeOnNode(fleet.first.route.sandboxId);
    expect(await visiting).toMatchObject({ status: 200, text: "from elsewhere" });
  });

  test("does not resume a sandbox that stays paused", async () => {
    const find = (): Whereabouts => ({ is: "paused", moving: false });
    const safe = await interrupted({}, { find });
    expect([safe.status, message(safe.text)]).toEqual([502, "The sandbox is paused: connect to resume it"]);
    const other = await interrupted({ method: "POST" }, { find });
    expect(other.status).toBe(502);
    expect(message(other.text)).toContain(`The sandbox was paused ${MAY_HAVE}`);
  });

  test.each(["GET", "POST"])("is told that the sandbox is gone where it was killed (%s)", async (method) => {
    const { status, text } = await interrupted({ method }, { find: () => ({ is: "not_found" }) });
    expect([status, message(text)]).toEqual([502, NOT_FOUND]);
  });

  test("is told to come again only if it may, where no orchestrator can be asked", async () => {
    const find = () => {
      throw new OrchestratorAway();
    };
    const safe = await interrupted({}, { find });
    expect([safe.status, safe.retryAfter]).toEqual([503, "1"]);
    const other = await interrupted({ method: "POST" }, { find });
    expect([other.status, other.retryAfter]).toEqual([503, null]);
    expect(message(other.text)).toContain(MAY_HAVE);
  });
});

describe("the node's proxy", () => {
  async function throughProxy({ door, first: { route }, port }: Fleet, at = port) {
    return new Promise<{ status: number | undefined; error: unknown; reason: unknown }>((resolve, reject) => {
      const headers = {
        "svc-node-token": "node-token-of-these-tests",
        "svc-sandbox-id": route.sandboxId,
        "svc-execution-id": route.executionId,
        "svc-sandbox-port": String(at),
      };
      httpRequest(door.nodeProxyUrl, { headers })
        .once("response", ({ statusCode: status, headers: { "svc-proxy-error": error, "svc-proxy-reason": reason } }) =>
          resolve({ status, error, reason }),
        )
        .once("error", reject)
        .end();
    });
  }

  test("says of a request under way that its sandbox may have got it", async () => {
    const fleet = await openFleet({});
    const asking = throughProxy(fleet);
    await expect.poll(() => fleet.first.seen).toHaveLength(1);
    await fleet.door.removeOnNode(fleet.first.route.sandboxId);
    expect(await asking).toEqual({ status: 421, error: "removed", reason: "under-way" });
  });

  test("does not say so of a request that never reached its sandbox", async () => {
    const unreached = async () => {
      const fleet = await openFleet({});
      // Nothing listens there, and the proxy dials it again for a second.
      const asking = throughProxy(fleet, 9);
      await new Promise((resolve) => setTimeout(resolve, 150));
      await fleet.door.removeOnNode(fleet.first.route.sandboxId);
      return [await asking, await throughProxy(fleet)];
    };
    const removed = { status: 421, error: "removed", reason: undefined };
    // On a busy machine the removal may come after that second.
    await expect.poll(unreached).toEqual([removed, removed]);
  });
});
