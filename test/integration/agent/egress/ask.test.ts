import { getEventListeners } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import { askTcp, askUdp } from "../../../../agent/egress/dns/ask.ts";
import { ask } from "../../../../agent/egress/dns/question.ts";
import { nameServer } from "../../../support/peers/name-server.ts";

/** The question as its own answer: with the bit that says so. */
function echo(query: Buffer): Buffer {
  const reply = Buffer.from(query);
  reply.writeUInt8(reply.readUInt8(2) | 0x80, 2);
  return reply;
}

test.each([
  ["UDP", askUdp],
  ["TCP", askTcp],
])("a question over %s leaves nothing at the signal of the resolver's stop", async (_transport, once) => {
  const server = await nameServer(echo);
  onTestFinished(() => server.close());
  const either = vi.spyOn(AbortSignal, "any");
  onTestFinished(() => either.mockRestore());
  const stopping = new AbortController();
  const { noAnswer } = await once(ask("name.example", "A"), [server], stopping.signal);
  expect(noAnswer).toBeUndefined();
  const signals = [stopping.signal, ...either.mock.results.map(({ value }) => value as AbortSignal)];
  expect(signals).toHaveLength(2);
  await expect.poll(() => signals.flatMap((signal) => getEventListeners(signal, "abort"))).toEqual([]);
});
