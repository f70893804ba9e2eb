/**
 * Parts of the network's enforcement are killed or flushed while programs in sandboxes send all the time. Traffic that the
 * policy forbids never arrives in the test internet, and traffic that it allows arrives again by itself.
 */

import { Sandbox, type SandboxNetworkOpts } from "e2b";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { openInternet } from "../support/internet/internet.ts";
import { ADDRESS, countedPair, SOCKS_PORT } from "../support/internet/plan.ts";
import { dropFrozen } from "../support/platform/frozen.ts";
import { openPlatform } from "../support/platform/platform.ts";
import { egressPid, killHard, run, settingOf, untilReady } from "../support/platform/programs.ts";
import { forkOf, NOTHING, reach } from "../support/sandbox/egress.ts";
import { arrivedAt, startFlood } from "../support/sandbox/flood.ts";
import { ownSandbox } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
const internet = openInternet();
const table = settingOf(platform, "agent", "SVC_NETWORK_NAME");

beforeAll(() => untilReady(platform));
afterEach(() => untilReady(platform));

// Each test has addresses of its own, so a count there covers only that test's sandboxes.
let used = 0;
const fresh = () => {
  used += 1;
  return countedPair(used);
};

interface Kind {
  readonly name: string;
  readonly network: (forbidden: string, allowed: string) => SandboxNetworkOpts;
  /** Whether the egress process carries all traffic of this kind, so that the kernel must forward none of its packets. */
  readonly redirected: boolean;
}

const KINDS: readonly Kind[] = [
  { name: "addresses", network: (forbidden) => ({ denyOut: [forbidden] }), redirected: false },
  {
    name: "domains",
    network: (_, allowed) => ({ allowOut: ["google.example", allowed], denyOut: NOTHING }),
    redirected: true,
  },
  {
    name: "proxy",
    network: (forbidden) => ({ denyOut: [forbidden], egressProxy: { address: `${ADDRESS.socks}:${SOCKS_PORT}` } }),
    redirected: true,
  },
];

const INJURIES: Readonly<Record<string, () => Promise<unknown>>> = {
  "the egress process is killed": async () => process.kill(await egressPid(platform), "SIGKILL"),
  "the agent is killed": () => killHard(platform, "agent"),
  "the agent and its egress process are killed": async () => {
    const child = await egressPid(platform);
    await killHard(platform, "agent");
    // The process may have ended already, because its channel closed.
    try {
      process.kill(child, "SIGKILL");
    } catch {}
  },
  "the table is deleted": () => run("nft", ["delete", "table", "inet", table]),
  "the table is emptied": () => run("nft", ["flush", "table", "inet", table]),
};

describe.each(Object.keys(INJURIES))("%s", (injury) => {
  test("nothing forbidden arrives meanwhile, and the egress process recovers without help", async () => {
    const cases = await Promise.all(
      KINDS.map(async (kind) => {
        const [forbidden, allowed] = fresh();
        const sandbox = await ownSandbox({ timeoutMs: 900_000, network: kind.network(forbidden, allowed) });
        await startFlood(sandbox, forbidden, allowed);
        const address = (await sandbox.commands.run("hostname -I")).stdout.trim().split(" ")[0] ?? "";
        return { kind, forbidden, allowed, sandbox, address };
      }),
    );
    const passed = (source: string) => internet.packets("passed", { source });
    const before = await Promise.all(cases.map(({ address }) => passed(address)));
    // Each sandbox is known to send before the disturbance. Behind the proxy, no packet goes to the address itself.
    for (const { kind, allowed } of cases.filter(({ kind }) => kind.name !== "proxy")) {
      await expect.poll(() => arrivedAt(internet, allowed), { message: kind.name }).toBeGreaterThan(0);
    }
    expect(await Promise.all(cases.map(({ sandbox }) => reach(sandbox, "google.example")))).toEqual(
      cases.map(() => ({ "google.example": "ok" })),
    );
    for (let round = 0; round < 2; round++) {
      await INJURIES[injury]?.();
      const reached = async () => {
        const outcomes = await Promise.all(
          cases.map(({ sandbox }) => reach(sandbox, "google.example").catch(() => ({}))),
        );
        return outcomes.map((one: Readonly<Record<string, string>>) => one["google.example"]);
      };
      await expect.poll(reached, { timeout: 120_000, interval: 200 }).toEqual(["ok", "ok", "ok"]);
    }
    for (const [index, { kind, forbidden, address, allowed }] of cases.entries()) {
      expect([kind.name, await arrivedAt(internet, forbidden)]).toEqual([kind.name, 0]);
      if (kind.redirected) expect([kind.name, await passed(address)]).toEqual([kind.name, before[index]]);
      if (kind.name === "proxy") expect(await arrivedAt(internet, allowed)).toBe(0);
    }
  }, 600_000);
});

test("the SOCKS server is killed: nothing leaves another way, and service returns with it", async () => {
  const [forbidden, allowed] = fresh();
  const sandbox = await ownSandbox({
    network: { denyOut: [forbidden], egressProxy: { address: `${ADDRESS.socks}:${SOCKS_PORT}` } },
  });
  await startFlood(sandbox, forbidden, allowed);
  const google = await arrivedAt(internet, ADDRESS.google);
  await internet.killSocks();
  try {
    for (let round = 0; round < 3; round++) {
      expect(await reach(sandbox, "google.example")).toEqual({ "google.example": "blocked" });
    }
  } finally {
    await internet.startSocks();
  }
  expect(await reach(sandbox, "google.example")).toEqual({ "google.example": "ok" });
  expect(await arrivedAt(internet, ADDRESS.google)).toBe(google);
  expect([await arrivedAt(internet, forbidden), await arrivedAt(internet, allowed)]).toEqual([0, 0]);
});

describe("the first packets", () => {
  const arriving = (address: string) => async () => {
    const then = await arrivedAt(internet, address);
    await expect.poll(() => arrivedAt(internet, address)).toBeGreaterThan(then);
  };

  /** The count once it stays the same: what a sandbox sent last is on its way when its kill is answered. */
  const atRest = async (address: string) => {
    const looks = [-1];
    const stays = async () => {
      looks.push(await arrivedAt(internet, address));
      return looks.slice(-3).every((count) => count === looks.at(-1));
    };
    await expect.poll(stays, { interval: 1_000 }).toBe(true);
    return looks.at(-1);
  };

  test.each(KINDS.filter(({ name }) => name !== "proxy").map((kind) => [kind.name, kind] as const))(
    "after resumes from frozen memory and from the disk, and in forks, reach nothing forbidden: %s",
    async (_, kind) => {
      const [forbidden, allowed] = fresh();
      const sandbox = await ownSandbox({ timeoutMs: 600_000, network: kind.network(forbidden, allowed) });
      await startFlood(sandbox, forbidden, allowed);
      const goesOn = arriving(allowed);
      await goesOn();
      for (const stored of [false, true, false, true]) {
        await sandbox.pause();
        if (stored) await dropFrozen(platform, sandbox.sandboxId);
        await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 600_000 });
        await goesOn();
      }
      const copies = [await forkOf(sandbox), await forkOf(sandbox)];
      await sandbox.kill();
      await goesOn();
      expect(copies).toHaveLength(2);
      expect(await arrivedAt(internet, forbidden)).toBe(0);
    },
    400_000,
  );

  test("of a sandbox whose snapshot had an open policy reach only addresses that its own policy allows", async () => {
    const [forbidden, allowed] = fresh();
    const source = await ownSandbox();
    await startFlood(source, forbidden, allowed);
    await arriving(forbidden)();
    const { snapshotId } = await source.createSnapshot();
    await source.kill();
    const before = await atRest(forbidden);
    for (const kind of KINDS.filter(({ name }) => name !== "proxy")) {
      const sandbox = await Sandbox.create(snapshotId, {
        timeoutMs: 300_000,
        network: kind.network(forbidden, allowed),
      });
      try {
        await arriving(allowed)();
      } finally {
        await sandbox.kill();
      }
    }
    expect(await arrivedAt(internet, forbidden)).toBe(before);
  });

  test("of sandboxes out of the warm pool, one after the other in the same slots, reach nothing forbidden", async () => {
    const [forbidden, allowed] = fresh();
    for (let round = 0; round < 8; round++) {
      // The sandbox before had no restrictions, and used a slot that one of the next sandboxes gets.
      const free = await Sandbox.create({ timeoutMs: 300_000 });
      await free.kill();
      const kind = KINDS[round % 2];
      if (kind === undefined) throw new Error("no kind");
      const sandbox = await Sandbox.create({ timeoutMs: 300_000, network: kind.network(forbidden, allowed) });
      try {
        await startFlood(sandbox, forbidden, allowed);
        await arriving(allowed)();
      } finally {
        await sandbox.kill();
      }
    }
    expect(await arrivedAt(internet, forbidden)).toBe(0);
  });
});
