/** Snapshots of one node that another one reads from it over the network, without a store. */

import { existsSync, readdirSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { addPeerRoutes } from "../../../../agent/api/peer-routes.ts";
import { openPeer } from "../../../../agent/blobs/peer.ts";
import { createArrivals } from "../../../../agent/snapshots/beyond/arrivals.ts";
import { fetchSnapshot } from "../../../../agent/snapshots/beyond/fetch-snapshot.ts";
import { createImageArrivals } from "../../../../agent/snapshots/beyond/image-arrivals.ts";
import { createOffers, type Offers } from "../../../../agent/snapshots/beyond/offers.ts";
import { createServer } from "../../../../shared/http/server.ts";
import { createKeyedMutex } from "../../../../shared/program/keyed-mutex.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { EDGE, nodeName, ORCHESTRATOR } from "../../../../shared/tls/names.ts";
import type { Door, Meeting } from "../../../../shared/tls/peers.ts";
import { noBlobStore } from "../../../support/fakes/no-blobs.ts";
import { testPlatform } from "../../../support/tls/platform.ts";
import { type BeyondNode, IMAGE, newNode, newPlace, storedOn } from "./beyond-nodes.ts";

const log = createLog({ component: "test", level: "silent" });
const { signal } = new AbortController();
const REF = `${"a".repeat(64)}.1`;

let one: BeyondNode;
let two: BeyondNode;
let offers: Offers;
beforeEach(async () => {
  const place = await newPlace();
  [one, two] = [await newNode(place, "one"), await newNode(place, "two")];
  offers = offersOf(one);
});

function offersOf({ fetching, stores, files, frozen, clock }: BeyondNode): Offers {
  const { blobs, docker } = fetching;
  const { containers } = docker;
  const made = createOffers({
    blobs,
    containers,
    files,
    frozen,
    snapshots: stores.snapshots,
    now: () => clock.now,
    log,
  });
  onTestFinished(() => made.stop());
  return made;
}

/** The first node's API, as far as other nodes use it. */
async function served(door?: Door): Promise<string> {
  const server = createServer(log, { door });
  addPeerRoutes(server, { offers, peering: { apiDoor: door } });
  await server.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.close());
  return `${door === undefined ? "http" : "https"}://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
}

/** The second node, which has no store. */
function arrivals({ stores, fetching }: BeyondNode, meeting?: Meeting) {
  const made = createArrivals({
    store: {
      use() {
        throw new Error("this node has no store");
      },
    },
    snapshots: stores.snapshots,
    peer: (place) => openPeer(place, meeting),
    fetch: (wanted, from, options) => fetchSnapshot(wanted, from, fetching, options),
    mutex: createKeyedMutex(),
    waitMs: 60_000,
  });
  onTestFinished(() => made.stop());
  return made;
}

async function asked(url: string, snapshotId = "x") {
  const { ref = "", ticket } = await offers.snapshot(snapshotId);
  return { snapshotId, projectId: "project", memory: true, ref, peer: { nodeId: "one", url, ticket } };
}

test.each(["pause", "checkpoint"] as const)(
  "a %s is on the second node as on the first, which alone had it: row, memory, disk, and the image below",
  async (kind) => {
    const snapshot = await storedOn(one, "x", kind);
    expect(await arrivals(two).fetch(await asked(await served()))).toMatchObject({ here: true });
    const { disk, ...rest } = two.stores.snapshots.get("x") ?? snapshot;
    const { containerId } = snapshot.disk;
    expect({ ...rest, disk: { ...disk, containerId, takenFrom: undefined } }).toEqual(snapshot);
    expect(disk.containerId).not.toBe(containerId);
    for (const path of ["snapshots/x/images/pages-1.img", "snapshots/x/manifest.json"])
      expect(await readFile(join(two.own, path), "utf8")).toBe(await readFile(join(one.own, path), "utf8"));
    const place = `disks/${kind === "pause" ? disk.containerId.slice(1) : "x"}.img`;
    expect(await readFile(join(two.own, place), "utf8")).toBe(await readFile(join(one.own, "disks/x.img"), "utf8"));
    expect(await readFile(join(two.own, "image", "layer.tar"), "utf8")).toBe("the layer of the image");
    expect(two.state.below).toEqual(new Map([["svc/snapshot:x", IMAGE]]));
    expect(one.traffic.read().to_nodes).toBeGreaterThan(0);
    // It is in no store, and the node must not say that it is.
    expect(two.stores.uploads.get("x")).toBeUndefined();
    expect(existsSync(join(one.own, "..", "share", "sha256"))).toBe(false);
  },
);

test("a node on the same machine gets what it reads as it is, without compression, and it counts as the same", async () => {
  const memory = "memory ".repeat(100_000);
  await storedOn(one, "x", "pause");
  await writeFile(join(one.own, "snapshots/x/images/pages-1.img"), memory);
  two.state.images.add(IMAGE);
  expect(await arrivals(two).fetch(await asked(await served()))).toMatchObject({ here: true });
  expect(await readFile(join(two.own, "snapshots/x/images/pages-1.img"), "utf8")).toBe(memory);
  expect(one.traffic.read().to_nodes).toBeGreaterThan(memory.length);
});

test("an image that the second node has is not read out of the first node's Docker", async () => {
  await storedOn(one, "x", "pause");
  two.state.images.add(IMAGE);
  expect(await arrivals(two).fetch(await asked(await served()))).toMatchObject({ here: true });
  expect(one.state.saved).toBe(0);
});

test("nodes meet each other with certificates, and nobody else opens an offer", async () => {
  const platform = await testPlatform();
  const door = { credentials: await platform.credentials(nodeName("one")), admits: () => true };
  const url = await served(door);
  await storedOn(one, "x", "pause");
  const wanted = await asked(url);
  const as = async (name: string, expects = nodeName("one")) => ({
    credentials: await platform.credentials(name),
    expects,
  });
  for (const name of [ORCHESTRATOR, EDGE])
    await expect(arrivals(two, await as(name)).fetch(wanted)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("the connection has no certificate of a node") as string,
    });
  // The address is another node's: nothing of the ticket is sent to it.
  await expect(arrivals(two, await as(nodeName("two"), nodeName("three"))).fetch(wanted)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("did not answer") as string,
  });
  await expect(arrivals(two).fetch(wanted)).rejects.toMatchObject({
    message: expect.stringContaining("has no certificate to meet it") as string,
  });
  expect(two.stores.snapshots.all()).toEqual([]);
  expect(await arrivals(two, await as(nodeName("two"))).fetch(wanted)).toMatchObject({ here: true });
});

test("an address of another machine without TLS is refused before anything is sent", async () => {
  await storedOn(one, "x", "pause");
  await expect(arrivals(two).fetch(await asked("http://198.51.100.7:5010"))).rejects.toMatchObject({
    message: expect.stringContaining("where its data would come in clear") as string,
  });
});

test("a ticket opens its own offer only, and no longer than ten minutes after its last use", async () => {
  await storedOn(one, "x", "pause");
  await storedOn(one, "y", "pause");
  const url = await served();
  const [x, y] = [await asked(url, "x"), await asked(url, "y")];
  expect(x.peer.ticket).not.toBe(y.peer.ticket);
  expect((await asked(url, "x")).peer.ticket).toBe(x.peer.ticket);
  const read = (ticket: string, ref: string) => fetch(`${url}/v1/peer/blobs/${ref}`, bearing(ticket));
  expect((await read(x.peer.ticket, x.ref)).status).toBe(200);
  expect((await read(x.peer.ticket, y.ref)).status).toBe(404);
  expect((await read("0".repeat(64), x.ref)).status).toBe(401);
  expect((await fetch(`${url}/v1/peer/image`)).status).toBe(401);
  expect((await read(x.peer.ticket, "..%2fetc%2fpasswd")).status).toBe(400);
  one.clock.now += 600_001;
  expect((await read(x.peer.ticket, x.ref)).status).toBe(401);
});

test("an offer ends with its snapshot, and one that nobody has used for a while gives way to another", async () => {
  for (let n = 0; n < 33; n++) await storedOn(one, `x${n}`, "pause");
  const tickets: string[] = [];
  for (let n = 0; n < 32; n++) tickets.push((await offers.snapshot(`x${n}`)).ticket);
  await expect(offers.snapshot("x32")).rejects.toMatchObject({ code: "unavailable" });
  await offers.forget("x1");
  await expect(offers.imageOf(tickets[1] ?? "")).rejects.toMatchObject({ code: "unauthorized" });
  expect(await offers.snapshot("x32")).toMatchObject({ ref: expect.any(String) as string });
  one.clock.now += 30_000;
  await offers.snapshot("x0");
  expect(await offers.snapshot("x1")).toMatchObject({ ref: expect.any(String) as string });
  await expect(offers.read(tickets[2] ?? "", REF, signal)).rejects.toMatchObject({ code: "unauthorized" });
  expect(await offers.read(tickets[0] ?? "", REF, signal)).toBeUndefined();
});

const bearing = (ticket: string) => ({ headers: { authorization: `Bearer ${ticket}` } });

test("a disk that has changed since it was described is not given away, and nothing of it stays on the second node", async () => {
  await storedOn(one, "x", "pause");
  const wanted = await asked(await served());
  await writeFile(join(one.own, "disks", "x.img"), "DISK of x");
  await expect(arrivals(two).fetch(wanted)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("has changed since it was described") as string,
  });
  expect(two.stores.snapshots.all()).toEqual([]);
  expect(readdirSync(join(two.own, "disks"))).toEqual([]);
  // Asked again, the first node describes it as it is now.
  const again = await asked(wanted.peer.url);
  expect(again.ref).not.toBe(wanted.ref);
  expect(await arrivals(two).fetch(again)).toMatchObject({ here: true });
});

test("nothing drops the container of a snapshot while another node may read its disk", async () => {
  await storedOn(one, "x", "pause");
  await offers.snapshot("x");
  expect(one.state.holds).toEqual(["x"]);
  await offers.forget("x");
  expect(one.state.holds).toEqual([]);
  one.state.ownDisks = false;
  await expect(offers.snapshot("x")).rejects.toMatchObject({ code: "failed_precondition" });
  expect(one.state.holds).toEqual([]);
});

test("a snapshot that is being resumed, is spent, or is not there is not offered", async () => {
  await storedOn(one, "x", "pause");
  one.stores.snapshots.setResuming("x", true);
  await expect(offers.snapshot("x")).rejects.toMatchObject({ code: "conflict" });
  await expect(offers.snapshot("z")).rejects.toMatchObject({ code: "snapshot_files_missing" });
});

test("a checkpoint that lives for one call is not offered", async () => {
  await storedOn(one, "x", "checkpoint", { boot: "this one" });
  await expect(offers.snapshot("x")).rejects.toMatchObject({
    code: "failed_precondition",
    message: "snapshot x stays on this node: it lives for one call, and its files have no hashes",
  });
});

test("a disk without a file of its own stays on its node, which says why, and the next request tries again", async () => {
  await storedOn(one, "x", "pause");
  one.state.ownDisks = false;
  await expect(offers.snapshot("x")).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringContaining("stays on this node") as string,
  });
  one.state.ownDisks = true;
  expect(await offers.snapshot("x")).toMatchObject({ ref: expect.any(String) as string });
});

test("an image of Docker is offered by its name, and its files go when the offer ends", async () => {
  await storedOn(one, "x", "pause");
  const { ticket, ref = "" } = await offers.image(IMAGE, "project");
  expect(await offers.imageOf(ticket)).toEqual({ ref });
  expect(await offers.read(ticket, ref, signal)).toBeInstanceOf(Uint8Array);
  expect(readdirSync(join(one.own, "work"))).toHaveLength(1);
  await offers.stop();
  expect(readdirSync(join(one.own, "work"))).toEqual([]);
  await expect(offers.read(ticket, ref, signal)).rejects.toMatchObject({ code: "unauthorized" });
  await expect(offersOf(one).image("sha256:other", "project")).rejects.toMatchObject({ code: "not_found" });
});

test("an image of a template is on the second node under its name, and is removed when no container has used it for a day", async () => {
  await storedOn(one, "x", "pause");
  const { ref = "", ticket } = await offers.image(IMAGE, "template");
  const peer = { nodeId: "one", url: await served(), ticket };
  const { fetching, stores, clock, state } = two;
  let isUsed = true;
  const containers = {
    ...fetching.docker.containers,
    untag(image: string) {
      if (!isUsed) state.images.delete(image);
      return Promise.resolve(!isUsed);
    },
  };
  const arriving = createImageArrivals({
    blobs: fetching.blobs,
    containers,
    store: noBlobStore,
    stores,
    onChange: () => undefined,
    disk: fetching.disk,
    peer: (place) => openPeer(place, undefined),
    now: () => clock.now,
    log,
    waitMs: 60_000,
  });
  onTestFinished(() => arriving.stop());
  const wanted = { image: IMAGE, ref, projectId: "template", peer };
  const both = await Promise.all([arriving.fetch(wanted), arriving.fetch(wanted)]);
  expect(both.map(({ here }) => here)).toEqual([true, true]);
  expect(state.loaded).toBe(1);
  expect(await arriving.fetch(wanted)).toMatchObject({ here: true });
  expect(await readFile(join(two.own, "image", "layer.tar"), "utf8")).toBe("the layer of the image");
  await arriving.sweep();
  clock.now += 24 * 3_600_000 + 1;
  await arriving.sweep();
  expect(state.images).toEqual(new Set([IMAGE]));
  isUsed = false;
  await arriving.sweep();
  expect(state.images).toEqual(new Set());
  // An image that Docker had already is not this node's to remove.
  state.images.add(IMAGE);
  expect(await arriving.fetch(wanted)).toMatchObject({ here: true });
  clock.now += 24 * 3_600_000 + 1;
  await arriving.sweep();
  expect(state.images).toEqual(new Set([IMAGE]));
});

test("what another node gives away under the name of an image must be that image", async () => {
  await storedOn(one, "x", "pause");
  const { ref = "", ticket } = await offers.image(IMAGE, "template");
  const peer = { nodeId: "one", url: await served(), ticket };
  const { fetching, stores, clock } = two;
  const containers = { ...fetching.docker.containers, untag: () => Promise.resolve(true) };
  const { blobs, disk } = fetching;
  const common = { blobs, containers, stores, disk, now: () => clock.now, log, waitMs: 60_000 };
  const own = { ...common, store: noBlobStore, onChange: () => undefined };
  const arriving = createImageArrivals({ ...own, peer: (place) => openPeer(place, undefined) });
  onTestFinished(() => arriving.stop());
  const wanted = { image: "svc/build:other", ref, projectId: "template", peer };
  await expect(arriving.fetch(wanted)).rejects.toMatchObject({
    code: "snapshot_corrupt",
    message: expect.stringContaining(`what the node one has under ${ref} is not the image svc/build:other`) as string,
  });
});
