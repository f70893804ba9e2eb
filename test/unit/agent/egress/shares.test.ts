/** The part of the shared room that one greedy sandbox gets, and the part that stays for the other sandboxes. */

import { describe, expect, test } from "vitest";
import { openShares, roomOfEgress } from "../../../../agent/egress/limits/shares.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });

function take(shares: ReturnType<typeof openShares>, who: string, wanted: number): number {
  return Array.from({ length: wanted }, () => shares.enter(who)).filter((got) => got).length;
}

describe("room that sandboxes share", () => {
  test("ten that take all they can leave some for a hundred that need little", () => {
    const { connections } = roomOfEgress(20_000, 1_024);
    const shares = openShares(connections, "test", log);
    const greedy = Array.from({ length: 10 }, (_, index) => take(shares, `greedy ${index}`, 2_000));
    expect(Math.max(...greedy)).toBe(1_024);
    // The limit is 20 000 descriptors, and a connection takes two or three of them.
    expect(greedy.reduce((sum, got) => sum + got, 0)).toBeLessThan(connections.total);
    for (let index = 0; index < 50; index++) expect(take(shares, `modest ${index}`, 8)).toBe(8);
    for (let index = 0; index < 50; index++) expect(take(shares, `another ${index}`, 8), `${index}`).toBe(8);
  });

  test("a single sandbox has at most its own limit, and can take again what it has released", () => {
    const shares = openShares({ total: 100, most: 10, few: 2, reserved: 10 }, "test", log);
    expect(take(shares, "a", 20)).toBe(10);
    shares.leave("a");
    shares.leave("a");
    expect(take(shares, "a", 20)).toBe(2);
  });

  test("nothing is given out above the total, and all of it comes back", () => {
    const shares = openShares({ total: 10, most: 10, few: 10, reserved: 0 }, "test", log);
    expect(take(shares, "a", 6) + take(shares, "b", 6)).toBe(10);
    expect(shares.enter("c")).toBe(false);
    for (let count = 0; count < 6; count++) shares.leave("a");
    expect(take(shares, "c", 10)).toBe(6);
  });
});

test.each([80, 1_024, 20_000, 1_048_576])("of %i descriptors, connections and questions leave some over", (limit) => {
  const { connections, questions, dnsConnections } = roomOfEgress(limit, 1_024);
  const taken = 2 * connections.total + questions.total + 2 * dnsConnections.total;
  if (limit > 200) expect(taken).toBeLessThan(limit);
  for (const room of [connections, questions, dnsConnections]) expect(room.reserved).toBeLessThan(room.total);
});
