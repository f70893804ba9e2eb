/** When a node writes zstd: never for a reader that has not said that it reads it. */

import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { applyReply } from "../../../../agent/api/apply-reply.ts";
import { describeNode } from "../../../../agent/api/heartbeat.ts";
import { addPeerRoutes } from "../../../../agent/api/peer-routes.ts";
import { hostBlobs } from "../../../../agent/blobs/host-blobs.ts";
import { openPeer } from "../../../../agent/blobs/peer.ts";
import { readAgentConfig } from "../../../../agent/config.ts";
import { BLOB_ENCODINGS, ENCODINGS_DETAIL, readsZstd } from "../../../../shared/agent-api/blobs/encodings.ts";
import type { HeartbeatReply } from "../../../../shared/agent-api/routes.ts";
import { createServer } from "../../../../shared/http/server.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });
const REF = `${"a".repeat(64)}.1`;
const content = Buffer.from("a line of a file that is compressed\n".repeat(4_000));
const { signal } = new AbortController();

test("a new node writes deflate, zstd as soon as the orchestrator says that every node reads it, and deflate when one does not", async () => {
  const blobs = hostBlobs(readAgentConfig({}));
  onTestFinished(() => blobs.close());
  const codec = blobs.codec("p1");
  const id = await codec.idOf(content);
  const written = async () => (await codec.encode(id, content))[4];
  const reply: HeartbeatReply = { pools: [], stop: [], endAt: {}, deleteSnapshots: [] };
  const deps = { pool: { setTargets: () => undefined }, blobs, log } as unknown as Parameters<typeof applyReply>[1];
  expect(await written()).toBe(1);
  applyReply({ ...reply, zstdBlobs: true }, deps);
  expect(await written()).toBe(2);
  // An older orchestrator has taken over, or an older node has joined.
  applyReply(reply, deps);
  expect(await written()).toBe(1);
});

test("a node reports what it reads in a place that an older orchestrator takes as it is", () => {
  const capabilities = { memorySnapshots: true, diskLimit: true, detail: { criu: "4.2" } };
  const now = { capabilities, running: [], machine: {}, snapshots: [], findings: [] };
  const described = describeNode(
    readAgentConfig({}),
    {} as Parameters<typeof describeNode>[1],
    now as unknown as Parameters<typeof describeNode>[2],
  );
  expect(described.node.capabilities.detail).toEqual({ criu: "4.2", [ENCODINGS_DETAIL]: BLOB_ENCODINGS });
  expect(readsZstd(described.node.capabilities.detail[ENCODINGS_DETAIL])).toBe(true);
  expect(readsZstd(undefined)).toBe(false);
  expect(readsZstd("deflate, zstdx")).toBe(false);
});

/** A node's API, and how each blob was packed that it gave. */
function offering() {
  const server = createServer(log);
  const packings: unknown[] = [];
  const read = (_ticket: string, _ref: string, _signal: AbortSignal, packing?: unknown) => {
    packings.push(packing);
    return Promise.resolve(Buffer.from("bytes"));
  };
  addPeerRoutes(server, {
    offers: { read, imageOf: () => Promise.resolve({ ref: undefined }) },
    peering: { apiDoor: undefined },
  });
  onTestFinished(() => server.close());
  return { server, packings };
}

test("another machine gets zstd when it says that it reads it, an older one deflate, and this machine the blob as it is", async () => {
  const { server, packings } = offering();
  const ask = (remoteAddress: string, headers: Record<string, string> = {}) =>
    server.inject({
      url: `/v1/peer/blobs/${REF}`,
      remoteAddress,
      headers: { authorization: "Bearer ticket", ...headers },
    });
  const reads = { "svc-blob-encodings": "deflate, zstd" };
  expect((await ask("198.51.100.7", reads)).statusCode).toBe(200);
  await ask("198.51.100.7");
  await ask("127.0.0.1", reads);
  expect(packings).toEqual(["zstd", "deflate", "fast"]);
});

test("a node says in each request for a blob what it reads", async () => {
  const { server } = offering();
  const asked: unknown[] = [];
  server.addHook("onRequest", (request, _reply, done) => {
    asked.push(request.headers["svc-blob-encodings"]);
    done();
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  const { port } = server.server.address() as AddressInfo;
  const peer = openPeer({ nodeId: "n1", url: `http://127.0.0.1:${port}`, ticket: "ticket" }, undefined);
  onTestFinished(() => peer.close());
  expect(await peer.source.get(REF, signal)).toEqual(Buffer.from("bytes"));
  expect(asked).toEqual([BLOB_ENCODINGS]);
});
