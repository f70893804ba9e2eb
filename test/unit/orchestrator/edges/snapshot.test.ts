/** Whatever changes while an edge gets the first routes, it ends with those of the orchestrator. */

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { lineReader } from "../../../../orchestrator/edge/following/lines.ts";
import type { Line, NodeLine } from "../../../../orchestrator/edge/following/messages.ts";
import { Replica } from "../../../../orchestrator/edge/following/replica.ts";
import { RouteMap } from "../../../../orchestrator/edge/route-map.ts";
import type { EdgeRoute } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { FollowerStream } from "../../../../orchestrator/edges/follower-stream.ts";
import { newRoute } from "../../../support/edges/route-server.ts";

const SANDBOXES = 40;

/** A change of one sandbox: it starts, is moved, held or ended, or its node gets another address; or the edge reads a while. */
const change = fc.record({
  sandbox: fc.nat(SANDBOXES - 1),
  what: fc.constantFrom("start", "hold", "end", "address", "read", "read"),
});

function world() {
  const table = new RouteMap();
  const nodes = new Map<string, NodeLine>();
  const node = (nodeId: string, proxyUrl: string): NodeLine => ({
    is: "node",
    nodeId,
    proxyUrl,
    token: `to-${proxyUrl}`,
  });
  for (const nodeId of ["n0", "n1", "n2"]) nodes.set(nodeId, node(nodeId, `http://${nodeId}:1`));
  // Large ones, so that the first routes do not fit into one read.
  const route = (sandbox: number): EdgeRoute =>
    newRoute({ sandboxId: `i${sandbox}`, nodeId: `n${sandbox % 3}`, address: "x".repeat(20_000) });
  for (let sandbox = 0; sandbox < SANDBOXES / 2; sandbox++) table.put(route(sandbox));
  const stream = new FollowerStream({
    routes: table,
    nodeOf: (nodeId) => nodes.get(nodeId),
    hello: { is: "hello", followerId: "f", straight: true },
    onCut: (reason) => {
      throw new Error(reason);
    },
  });
  const put = (changed: EdgeRoute) => {
    table.put(changed);
    stream.put(changed);
  };
  let moves = 0;
  const changes: Readonly<Record<string, (sandbox: number) => void>> = {
    start: (sandbox) => put(route(sandbox)),
    hold(sandbox) {
      const known = table.lookup(`i${sandbox}`);
      if (known !== undefined) put({ ...known, held: known.held !== true });
    },
    end(sandbox) {
      const known = table.lookup(`i${sandbox}`);
      if (known === undefined) return;
      void table.remove(known.sandboxId, known.executionId, "killed");
      void stream.removed(known.sandboxId, known.executionId, "killed");
    },
    address(sandbox) {
      const nodeId = `n${sandbox % 3}`;
      nodes.set(nodeId, node(nodeId, `http://${nodeId}:${++moves + 1}`));
      for (const known of table.running()) if (known.nodeId === nodeId) put(known);
    },
  };
  return { table, nodes, stream, changes };
}

function take(replica: Replica, line: Line): void {
  if (line.is === "node") replica.node(line);
  else if (line.is === "route") void replica.learn(line);
  else if (line.is === "removed") void replica.remove(line.sandboxId, line.executionId, line.reason);
}

test("the edge ends with the routes, addresses and tokens of the orchestrator, and each node stands before its routes", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (all) => {
      const { table, nodes, stream, changes } = world();
      const replica = new Replica(undefined);
      const reader = lineReader();
      const kinds: string[] = [];
      const read = () => {
        const bytes = stream.readable.read() as Buffer | null;
        if (bytes === null) return false;
        reader.read(bytes, (line) => {
          kinds.push(line.is);
          take(replica, line);
        });
        return true;
      };
      for (const { what, sandbox } of all) {
        if (what === "read") read();
        else changes[what]?.(sandbox);
      }
      while (read());
      const place = ({ nodeId }: EdgeRoute) => ({ proxyUrl: nodes.get(nodeId)?.proxyUrl, sameHost: false });
      const expected = [...table.running()].map((route) => ({ ...route, ...place(route) }));
      const byId = (a: { sandboxId: string }, b: { sandboxId: string }) => a.sandboxId.localeCompare(b.sandboxId);
      expect([...replica.running()].toSorted(byId)).toEqual(expected.toSorted(byId));
      expect(kinds.filter((kind) => kind === "whole")).toHaveLength(1);
      for (const { nodeId } of expected) expect(replica.tokenTo(nodeId)).toBe(nodes.get(nodeId)?.token);
      stream.leave();
    }),
    { numRuns: 60 },
  );
});
