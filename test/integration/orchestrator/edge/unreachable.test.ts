/** The node of a sandbox cannot be reached: what its edge asks, and what a client is told. */

import { createServer as createHttpServer } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { listening } from "../../../support/peers/listening.ts";
import type { FrontDoorOptions } from "./front-door.ts";
import { type Answers, type Fleet, message, NOT_FOUND, openFleet, running } from "./two-nodes.ts";

describe("a request whose sandbox's node cannot be reached", () => {
  const UNREACHABLE = "The sandbox cannot be reached at the moment";

  /** Nothing listens where the route leads. */
  async function openGone(options: FrontDoorOptions, answers: Answers): Promise<Fleet> {
    const fleet = await openFleet(options, answers);
    const { route } = fleet.first;
    fleet.door.routes.set(route.sandboxId, { ...route, proxyUrl: "http://127.0.0.1:1" });
    return fleet;
  }

  test.each([{ method: "GET" }, { method: "POST", body: "whole" }])(
    "goes to where the records have the sandbox now, with its body ($method)",
    async (how) => {
      const fleet = await openGone({ hasEveryRemoval: false }, { autoResume: (at) => Promise.resolve(running(at)) });
      expect(await fleet.visit(how)).toMatchObject({ status: 200, text: "from elsewhere" });
      expect(fleet.second.seen).toEqual([how.method]);
    },
  );

  test.each([
    { named: "the records have it there still", hasEveryRemoval: false, asked: 1 },
    { named: "the edge has every removal", hasEveryRemoval: true, asked: 0 },
  ])("is told so where $named, after $asked questions", async ({ hasEveryRemoval, asked }) => {
    let questions = 0;
    const there = ({ first: { route } }: Fleet) => {
      questions++;
      return Promise.resolve({ is: "running" as const, route });
    };
    const fleet = await openGone({ hasEveryRemoval }, { autoResume: there });
    const { status, text } = await fleet.visit();
    expect([status, message(text), questions]).toEqual([503, UNREACHABLE, asked]);
  });

  test.each([
    { hasEveryRemoval: false, asked: 1, body: "" },
    { hasEveryRemoval: true, asked: 0, body: "whole" },
  ])("waits for the node while it may come back, after $asked questions", async ({ hasEveryRemoval, asked, body }) => {
    let questions = 0;
    const there = ({ first: { route } }: Fleet) => {
      questions++;
      return Promise.resolve({ is: "running" as const, route });
    };
    const fleet = await openGone({ hasEveryRemoval, nodeWaitMs: 60_000 }, { autoResume: there });
    const visit = fleet.visit(body === "" ? {} : { method: "POST", body });
    setTimeout(() => fleet.door.routes.set(fleet.first.route.sandboxId, fleet.second.route), 1_000);
    expect(await visit).toMatchObject({ status: 200, text: "from elsewhere" });
    expect([questions, fleet.second.seen]).toEqual([asked, [body === "" ? "GET" : "POST"]]);
  });

  test("is told so when the node has not come back in that time, and the records are asked again", async () => {
    let questions = 0;
    const there = ({ first: { route } }: Fleet) => {
      questions++;
      return Promise.resolve({ is: "running" as const, route });
    };
    const fleet = await openGone({ hasEveryRemoval: false, nodeWaitMs: 600 }, { autoResume: there });
    const { status, text } = await fleet.visit();
    expect([status, message(text), questions]).toEqual([503, UNREACHABLE, 2]);
  });

  test("is told what the records say of a sandbox that has ended since", async () => {
    const ended = () => Promise.resolve({ is: "not_found" as const });
    const fleet = await openGone({ hasEveryRemoval: false }, { autoResume: ended });
    const { status, text } = await fleet.visit();
    expect([status, message(text)]).toEqual([502, NOT_FOUND]);
  });

  test("and refuses the edge's token is not repeated with a body that the node may have read", async () => {
    let questions = 0;
    const elsewhere = (at: Fleet) => {
      questions++;
      return Promise.resolve(running(at));
    };
    const fleet = await openFleet({ hasEveryRemoval: false }, { autoResume: elsewhere });
    const refusing = createHttpServer((request, response) => {
      request.resume();
      response.writeHead(401, { "svc-proxy-error": "unauthorized", "content-length": "0" }).end();
    });
    onTestFinished(() => void refusing.close());
    const { route } = fleet.first;
    fleet.door.routes.set(route.sandboxId, { ...route, proxyUrl: `http://127.0.0.1:${await listening(refusing)}` });
    const { status, text } = await fleet.visit({ method: "POST", body: "read" });
    expect([status, message(text), questions]).toEqual([503, UNREACHABLE, 0]);
    expect(await fleet.visit()).toMatchObject({ status: 200, text: "from elsewhere" });
  });
});
