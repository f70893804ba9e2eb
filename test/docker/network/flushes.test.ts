/** The table is taken away again and again under sandboxes that send all the time. */

import { expect, test } from "vitest";
import { CLOSED, OPEN } from "../../../shared/policy/egress-policy.ts";
import { ALLOWED, firewallBench, PROGRAMS } from "../../support/agent/firewall-bench.ts";
import { NETWORK } from "../../support/agent/firewall-orders.ts";

const { arrived, open, order, text } = firewallBench();

test("a packet that is under way when the table is emptied or deleted does not leave", async () => {
  await open(3, { ...OPEN, allowRanges: [`${ALLOWED}/32`], denyRanges: ["0.0.0.0/0"] });
  await open(2, { ...CLOSED, allowDomains: ["example.com"] });
  const before = await arrived();
  const senders = [2, 3, 3].map((slot) => text(slot, "python3", "-c", PROGRAMS.pour));
  const sending = Promise.all(senders);
  const state = { isOver: false };
  void sending.finally(() => (state.isOver = true));
  for (let round = 0; !state.isOver; round++) {
    await text(0, "nft", round % 2 === 0 ? "flush" : "delete", "table", "inet", NETWORK);
    await order({ do: "repair" });
  }
  const sent = (await sending).map(Number);
  expect(Math.min(...sent)).toBeGreaterThan(1_000);
  expect(await arrived()).toBe(before);
});
