/** An edge follows the routes of an orchestrator: what it knows, what the orchestrator waits for, and what is left when they are parted. */

import { Readable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { type Follower, follow } from "../../../../orchestrator/edge/following/follower.ts";
import type { RouteSource } from "../../../../orchestrator/edge/following/source.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { newRoute, startRouteServer } from "../../../support/edges/route-server.ts";

const log = createLog({ component: "test", level: "silent" });

async function followed(...sources: readonly RouteSource[]): Promise<Follower> {
  const follower = begun(...sources);
  await follower.ready();
  await isCurrent(follower);
  return follower;
}

/** It may take a while on a busy machine, and may be lost again for a moment. */
const isCurrent = (follower: Follower, is = true) => expect.poll(() => follower.isCurrent(), { interval: 5 }).toBe(is);

function begun(...sources: readonly RouteSource[]): Follower {
  const options = { machineId: "this-machine", awayMs: 60_000, log, random: Math.random };
  const follower = follow({ sources, ...options });
  onTestFinished(() => follower.stop());
  return follower;
}

const at = (follower: Follower, sandboxId: string) => follower.routes.lookup(sandboxId);

test("an edge has every route before it is ready, with the addresses and tokens of their nodes", async () => {
  const server = await startRouteServer();
  const routes = [newRoute(), newRoute({ nodeId: "n2", trafficAccessToken: "t", allowPublicTraffic: false })];
  for (const route of routes) server.routes.put(route);
  const follower = await followed(server.source());
  expect(routes.map(({ sandboxId }) => at(follower, sandboxId))).toEqual(routes);
  expect(follower.tokenTo("n2")).toBe("to-n2");
  expect(follower.docsUrl).toBe("http://api.test/docs");
  await expect.poll(() => follower.hasEveryRemoval(), { interval: 5 }).toBe(true);
});

test("an edge of another machine than the node's dials no container", async () => {
  const server = await startRouteServer({
    nodeOf: (nodeId) => ({ is: "node", nodeId, proxyUrl: "http://10.9.9.9:1", machineId: "far", token: "t" }),
  });
  const route = newRoute();
  server.routes.put(route);
  const follower = await followed(server.source());
  expect(at(follower, route.sandboxId)).toEqual({ ...route, proxyUrl: "http://10.9.9.9:1", sameHost: false });
});

test("an edge never dials containers while several orchestrators end sandboxes", async () => {
  const server = await startRouteServer({ alone: false });
  const follower = await followed(server.source());
  expect(follower.hasEveryRemoval()).toBe(false);
});

test("an edge learns what is added, held and replaced, and the streams of a replaced execution end", async () => {
  const server = await startRouteServer();
  const follower = await followed(server.source());
  const ended: string[] = [];
  follower.routes.onRemove((executionId) => void ended.push(executionId));
  const route = newRoute();
  server.routes.put(route);
  await expect.poll(() => at(follower, route.sandboxId)).toEqual(route);
  server.routes.put({ ...route, held: true });
  await expect.poll(() => at(follower, route.sandboxId)?.held).toBe(true);
  expect(ended).toEqual([]);
  server.routes.put({ ...route, executionId: "another" });
  await expect.poll(() => at(follower, route.sandboxId)?.executionId).toBe("another");
  expect(ended).toEqual([route.executionId]);
  expect(follower.routes.byToken(route.envdAccessToken)?.executionId).toBe("another");
});

test("a removal ends when the edge has ended the streams of the execution, and no sooner", async () => {
  const server = await startRouteServer({ acknowledgeMs: 60_000 });
  const route = newRoute();
  server.routes.put(route);
  const follower = await followed(server.source());
  const seen: string[] = [];
  let end = () => undefined as void;
  follower.routes.onRemove(async (executionId, _sandboxId, reason) => {
    seen.push(`${executionId} ${reason ?? ""}`);
    await new Promise<void>((resolve) => {
      end = resolve;
    });
  });
  let isRemoved = false;
  const removing = server.routes.remove(route.sandboxId, route.executionId, "paused").then(() => {
    isRemoved = true;
  });
  await expect.poll(() => seen).toEqual([`${route.executionId} paused`]);
  expect(at(follower, route.sandboxId)).toBeUndefined();
  expect(isRemoved).toBe(false);
  end();
  await removing;
  await isCurrent(follower);
});

test("an edge that does not acknowledge is cut off, and follows again", async () => {
  const server = await startRouteServer();
  const route = newRoute();
  server.routes.put(route);
  const source = server.source();
  // It takes part in everything else, so only the missing acknowledgement can be the reason.
  const say: RouteSource["say"] = (followerId, said, signal) =>
    source.say(
      followerId,
      said.filter(({ is }) => is !== "done"),
      signal,
    );
  let opened = 0;
  const open: RouteSource["open"] = (signal) => {
    opened++;
    return source.open(signal);
  };
  const follower = await followed({ ...source, say, open });
  const before = opened;
  await server.routes.remove(route.sandboxId, route.executionId, "killed");
  expect(at(follower, route.sandboxId)).toBeUndefined();
  await expect.poll(() => opened).toBeGreaterThan(before);
  await isCurrent(follower);
});

test("when a removal ends, an edge that heard nothing of it goes by no route of its own", async () => {
  const server = await startRouteServer();
  const route = newRoute();
  server.routes.put(route);
  const source = server.source();
  const network = { loses: false };
  // The connection stands, and so do the edge's calls.
  async function* lossy(lines: AsyncIterable<Buffer>) {
    for await (const line of lines) if (!network.loses) yield line;
  }
  const follower = await followed({ ...source, open: async (signal) => lossy(await source.open(signal)) });
  network.loses = true;
  await server.routes.remove(route.sandboxId, route.executionId, "killed");
  expect([follower.isCurrent(), follower.hasEveryRemoval()]).toEqual([false, false]);
  network.loses = false;
  await expect.poll(() => at(follower, route.sandboxId)).toBeUndefined();
});

test("an edge keeps its routes while no orchestrator answers, and is current again with one that comes back", async () => {
  const server = await startRouteServer();
  const [stays, goes, sleeps] = [newRoute(), newRoute(), newRoute()];
  for (const route of [stays, goes, sleeps]) server.routes.put(route);
  const follower = await followed(server.source());
  const ended: string[] = [];
  follower.routes.onRemove((executionId, _id, reason) => void ended.push(`${executionId} ${reason ?? ""}`));
  await server.kill();
  await isCurrent(follower, false);
  expect([follower.size, follower.followed]).toEqual([3, undefined]);
  await server.routes.remove(goes.sandboxId, goes.executionId, "killed");
  await server.routes.remove(sleeps.sandboxId, sleeps.executionId, "paused");
  server.fates.set(sleeps.sandboxId, { is: "paused", moving: false });
  expect(ended).toEqual([]);
  await server.start();
  await isCurrent(follower);
  expect(ended.toSorted()).toEqual([`${goes.executionId} killed`, `${sleeps.executionId} paused`].toSorted());
  expect(at(follower, stays.sandboxId)).toEqual(stays);
});

test("an orchestrator that has not heard of a running sandbox yet cuts none of its streams", async () => {
  const first = await startRouteServer();
  const route = newRoute();
  first.routes.put(route);
  const second = await startRouteServer({
    // The record says that it runs, and the route comes with the answer.
    find: (sandboxId) => {
      if (sandboxId === route.sandboxId) second.routes.put(route);
      return Promise.resolve({ is: "running", route });
    },
  });
  const follower = await followed(first.source(), second.source());
  const ended: string[] = [];
  follower.routes.onRemove((executionId) => void ended.push(executionId));
  await first.kill();
  await expect.poll(() => follower.followed).toBe(second.url);
  await isCurrent(follower);
  expect(ended).toEqual([]);
  expect(at(follower, route.sandboxId)).toEqual(route);
});

test("an edge that reads too slowly is cut off and begins again", async () => {
  const server = await startRouteServer({ mostWaiting: 300_000 });
  const source = server.source();
  const gate = { open: false };
  async function* slow(lines: AsyncIterable<Buffer>) {
    for await (const line of lines) {
      yield line;
      while (!gate.open) await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
  let opened = 0;
  const open: RouteSource["open"] = async (signal) => {
    const lines = await source.open(signal);
    return ++opened === 1 ? slow(lines) : lines;
  };
  const follower = begun({ ...source, open });
  await expect.poll(() => server.followers.size).toBe(1);
  const address = "x".repeat(60_000);
  // Sockets on the way hold some of it too.
  for (let count = 0; server.followers.size > 0 && count < 1_000; count++) {
    server.routes.put(newRoute({ address }));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(server.followers.size).toBe(0);
  gate.open = true;
  await expect.poll(() => opened).toBeGreaterThan(1);
  await expect.poll(() => follower.size).toBe([...server.routes.running()].length);
  await isCurrent(follower);
});

test("questions are answered in the order of the routes, and asked again when the stream is cut", async () => {
  const server = await startRouteServer();
  const follower = await followed(server.source());
  const { signal } = new AbortController();
  const route = newRoute();
  const asked: unknown[] = [];
  server.onWake = (...visit) => {
    asked.push(visit.slice(0, 3));
    server.routes.put(route);
    return Promise.resolve({ is: "running", route });
  };
  const tokens = { trafficAccessTokens: ["t"], envdAccessToken: undefined, signed: undefined, apiKey: "k" };
  expect(await follower.autoResume(route.sandboxId, 80, tokens, signal)).toEqual({ is: "running", route });
  expect(asked).toEqual([[route.sandboxId, 80, { trafficAccessTokens: ["t"], apiKey: "k" }]]);
  server.onWake = () => Promise.resolve({ is: "denied", message: "no" });
  expect(await follower.autoResume("i0", 80, {}, signal)).toEqual({ is: "denied", message: "no" });
  server.paused.push({ sandboxId: "i9", envdAccessToken: "e" });
  expect(await follower.pausedSandboxes()).toEqual([{ sandboxId: "i9", envdAccessToken: "e" }]);

  let times = 0;
  server.onWake = () => {
    times++;
    return times === 1 ? new Promise(() => undefined) : Promise.resolve({ is: "paused" });
  };
  const answer = follower.autoResume("i1", 80, {}, signal);
  await expect.poll(() => times).toBe(1);
  await server.kill();
  await server.start();
  expect(await answer).toEqual({ is: "paused" });
});

test("an edge asks again for the paused sandboxes when one has lost its route, so that its token alone finds it at once", async () => {
  const server = await startRouteServer();
  const follower = await followed(server.source());
  const route = newRoute();
  server.routes.put(route);
  await expect.poll(() => follower.routes.lookup(route.sandboxId)).toBeDefined();
  expect(await follower.pausedSandboxes()).toEqual([]);
  const { sandboxId, executionId, envdAccessToken } = route;
  server.paused.push({ sandboxId, envdAccessToken });
  await server.routes.remove(sandboxId, executionId, "paused");
  expect(await follower.pausedSandboxes()).toEqual([{ sandboxId, envdAccessToken }]);
});

test("an edge finds where a sandbox is, and nothing is resumed", async () => {
  const server = await startRouteServer();
  const follower = await followed(server.source());
  server.onWake = () => Promise.reject(new Error("a look-up resumes nothing"));
  const route = newRoute();
  server.routes.put(route);
  expect(await follower.find(route.sandboxId)).toEqual({ is: "running", route });
  expect(await follower.find("i0")).toEqual({ is: "not_found" });
  for (const moving of [true, false]) {
    server.fates.set("i1", { is: "paused", moving });
    expect(await follower.find("i1")).toEqual({ is: "paused", moving });
  }
  server.fates.set("i1", { is: "transitioning" });
  expect(await follower.find("i1")).toEqual({ is: "transitioning" });
});

test("a sandbox that ended while it was asked for does not come back", async () => {
  const server = await startRouteServer();
  const follower = await followed(server.source());
  const route = newRoute();
  server.onWake = () => Promise.resolve({ is: "running", route });
  const { signal } = new AbortController();
  expect(await follower.autoResume(route.sandboxId, 80, {}, signal)).toEqual({ is: "transitioning" });
  expect(at(follower, route.sandboxId)).toBeUndefined();
});

test("an edge that stops says so, and its stream is over", async () => {
  const server = await startRouteServer();
  const source = server.source();
  const heard: string[] = [];
  const say: RouteSource["say"] = async (id, said, signal) => {
    await source.say(id, said, signal);
    heard.push(...said.map(({ is }) => is));
  };
  const follower = await followed({ ...source, say });
  await follower.stop();
  expect(heard.at(-1)).toBe("leave");
  expect(server.followers.size).toBe(0);
});

test("an edge that was removed from the platform gets no more routes", async () => {
  const server = await startRouteServer({ lookEveryMs: 20 });
  const members = { isMember: true };
  const stream = await server.followers.handlers.follow({ params: undefined, query: undefined, body: undefined }, {
    caller: { name: "e1", isMember: () => Promise.resolve(members.isMember) },
  } as never);
  if (stream instanceof Readable) stream.resume();
  expect(server.followers.size).toBe(1);
  members.isMember = false;
  await expect.poll(() => server.followers.size).toBe(0);
});
