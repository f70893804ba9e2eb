/**
 * TCP connections over a dump and a restore by the real CRIU: those that stay inside the sandbox go on in the original and in
 * the copy, those that leave it go on in the original alone.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import { type TalkHost, type TalkingSandbox, talkHost } from "../../support/connections/talking-sandbox.ts";

const INSIDE = { loopback: "ok", ownAddress: "ok", loopback6: "ok" };
/** The bytes that talk.c writes in bulk. */
const BULK = "33554432 of 33554432, 0 wrong, end";

let host: TalkHost;
beforeAll(async () => {
  host = await talkHost();
});
afterAll(() => host.close());

/** Awaits rounds that began after this call. */
async function talksOn(sandbox: TalkingSandbox) {
  const { round } = await sandbox.talk();
  await expect.poll(async () => (await sandbox.talk()).round).toBeGreaterThan(round + 5);
  return sandbox.talk();
}

test("connections inside a sandbox go on in the original and in the copy, and those that leave it only in the original", async () => {
  const source = await host.start();
  expect(await talksOn(source)).toMatchObject({ ...INSIDE, outside: "open", unaccepted: "open" });
  await source.freeze();
  const images = await source.dump();
  const inside = await host.connections.closeInImages(images, source.slot);
  expect(inside).toEqual({ addresses: [source.slot.address], connections: true });
  const copy = await host.restore(images, inside);
  // The original is still frozen: nothing of it is needed.
  expect(await talksOn(copy)).toMatchObject({ ...INSIDE, outside: "end", unaccepted: "end" });
  source.thaw();
  expect(await talksOn(source)).toMatchObject({ ...INSIDE, outside: "open", unaccepted: "open" });

  // A copy of the copy talks over an address that neither of them has from its slot.
  await copy.freeze();
  const second = await copy.dump();
  const again = await host.connections.closeInImages(second, copy.slot);
  expect(again).toEqual({ addresses: [copy.slot.address, source.slot.address], connections: true });
  // The restored processes were running, so this dump finds other numbers on their way than the first one.
  const copyOfCopy = await host.restore(second, again);
  copy.thaw();
  expect(await talksOn(copyOfCopy)).toMatchObject({ ...INSIDE, outside: "end" });

  // Bytes on their way, unread, unacknowledged and unsent, arrive once and in order; so do the last ones of a closed peer.
  for (const sandbox of [source, copy, copyOfCopy]) {
    await sandbox.go();
    await expect.poll(() => sandbox.read("bulk")).toBe(BULK);
    await expect.poll(() => sandbox.read("half")).toBe("bye");
  }
});

test("a pause resets the peers of a frozen sandbox, which goes on with the connections inside it", async () => {
  const source = await host.start();
  expect(await talksOn(source)).toMatchObject({ outside: "open" });
  const [peer] = host.peers.slice(-1);
  if (peer === undefined) throw new Error("the sandbox has not connected to the outside");
  await source.freeze();
  const reset = new Promise((resolve) => peer.once("close", resolve));
  await host.connections.endOutside(source.slot);
  await reset;
  source.thaw();
  expect(await talksOn(source)).toMatchObject({
    ...INSIDE,
    outside: "Software caused connection abort",
    unaccepted: "open",
  });
  // A connection that was ended this way is no obstacle for the next pause.
  await source.freeze();
  const images = await source.dump();
  const copy = await host.restore(images, await host.connections.closeInImages(images, source.slot));
  expect(await talksOn(copy)).toMatchObject({ ...INSIDE, unaccepted: "end" });
});

test("a dump that was cut leaves no network lock, and its connections end instead of waiting for ever", async () => {
  const source = await host.start();
  await talksOn(source);
  await host.connections.mend(source.slot);
  expect(await talksOn(source)).toMatchObject({ ...INSIDE, outside: "open" });
  await source.freeze();
  await source.leaveLocked();
  await host.connections.mend(source.slot);
  source.thaw();
  await expect.poll(() => source.talk()).toMatchObject({ loopback: "Software caused connection abort" });
  expect(await source.tables()).toBe("");
});

test("memory of earlier versions is restored without its connections, and a later dump of it is as any other", async () => {
  const source = await host.start("closing");
  expect(await talksOn(source)).toMatchObject(INSIDE);
  await source.freeze();
  const images = await source.dump();
  const earlier = await host.restore(images, undefined);
  const lost = { loopback: "Broken pipe", ownAddress: "Broken pipe", loopback6: "Broken pipe", outside: "end" };
  await expect.poll(() => earlier.talk()).toMatchObject(lost);
  const inside = await host.connections.closeInImages(images, source.slot);
  expect(inside).toEqual({ addresses: [source.slot.address], connections: false });
  const later = await host.restore(images, inside);
  await expect.poll(() => later.talk()).toMatchObject(lost);
  source.thaw();
  expect(await talksOn(source)).toMatchObject({ ...INSIDE, outside: "open" });
});
