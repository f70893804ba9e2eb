/**
 * Whether packets of sandboxes come through the rules of their host: the real firewall tools change the rules of a node that is a
 * network namespace of its own.
 */

import { expect, onTestFinished, test } from "vitest";
import { firewallBench } from "../../support/agent/firewall-bench.ts";
import { NETWORK } from "../../support/agent/firewall-orders.ts";

const { arrived, counts, order, startEgress, text } = firewallBench();

const SLOW = { timeout: 90_000 };

type Ways = Record<string, "passes" | { readonly id: string; readonly evidence: string; readonly wayOut: string }>;

async function ways(egress = false): Promise<Ways> {
  await order({ do: "prepareProbe" });
  return ((await order({ do: "probe", egress })).result as { readonly ways: Ways }).ways;
}

/** Probes until the obstacle is named: a probe waits only a moment for the kernel's trace, and a busy machine prints that later. */
async function expectFound(way: string, wanted: object): Promise<Exclude<Ways[string], "passes">> {
  let found: Ways[string] | undefined;
  await expect.poll(async () => (found = (await ways())[way]), SLOW).toMatchObject(wanted);
  if (found === undefined || found === "passes") throw new Error("not found");
  return found;
}

/** Runs a command on the node, and another one after the test. */
async function during(does: string, undoes: string): Promise<void> {
  onTestFinished(async () => void (await text(0, "sh", "-c", undoes)));
  await text(0, "sh", "-c", does);
}

test("on a host without rules of its own every way passes, and no packet of the probe leaves the node", async () => {
  await startEgress();
  const before = await arrived();
  // A probe waits for its packets for a moment, in which a busy machine may stand still.
  await expect.poll(() => ways(true), SLOW).toEqual({ forward: "passes", resolver: "passes", egress: "passes" });
  expect(await arrived()).toBe(before);
  expect(await text(0, "nft", "list", "tables")).not.toContain("_probe");
});

test.each([
  [
    "a forward chain of another table with policy drop",
    "nft add table inet site; nft add chain inet site cut '{ type filter hook forward priority 10; policy drop; }'",
    "nft delete table inet site",
    "forward",
    "table inet site, chain cut: policy drop",
  ],
  [
    "iptables with policy DROP",
    "iptables -P FORWARD DROP",
    "iptables -P FORWARD ACCEPT; iptables -F FORWARD",
    "forward",
    "table ip filter, chain FORWARD: policy drop",
  ],
  [
    "a rule that iptables made",
    "iptables -A FORWARD -p tcp --dport 443 -j DROP",
    "iptables -F FORWARD",
    "forward",
    "table ip filter, chain FORWARD: rule",
  ],
  [
    "a rule in a chain that another one jumps to",
    "nft add table ip deep; nft add chain ip deep low; nft add chain ip deep top '{ type filter hook forward priority -200; }'; nft add rule ip deep low meta l4proto tcp reject; nft add rule ip deep top jump low",
    "nft delete table ip deep",
    "forward",
    "table ip deep, chain low: rule",
  ],
  [
    "a rule before connection tracking",
    `nft add table ip early; nft add chain ip early raw '{ type filter hook prerouting priority -300; }'; nft add rule ip early raw iifname '"${NETWORK}-*"' drop`,
    "nft delete table ip early",
    "forward",
    "table ip early, chain raw: rule",
  ],
  [
    "an input chain with policy drop, as ufw makes it",
    "iptables -P INPUT DROP",
    "iptables -P INPUT ACCEPT; iptables -F INPUT",
    "resolver",
    "table ip filter, chain INPUT: policy drop",
  ],
])("%s is named, with a command that lets packets through", async (...[, does, undoes, way, evidence]) => {
  await during(does, undoes);
  const found = await expectFound(way, { id: `network.${way}`, evidence: expect.stringContaining(evidence) });
  const command = found.wayOut.slice(found.wayOut.search(/(iptables -t|nft insert)/));
  await text(0, "sh", "-c", command);
  await expect.poll(async () => (await ways())[way], SLOW).toBe("passes");
});

test("where an input chain stops connections only, the way to the egress process is named, and names are looked up", async () => {
  await startEgress();
  await during(
    "nft add table inet site; nft add chain inet site in '{ type filter hook input priority 0; }'; nft add rule inet site in tcp dport 443 drop",
    "nft delete table inet site",
  );
  await expect
    .poll(() => ways(true), SLOW)
    .toMatchObject({ forward: "passes", resolver: "passes", egress: { id: "network.egress" } });
});

test("Docker's chain that is gone is named where the filter needs it", async () => {
  await during(
    "iptables -N DOCKER-USER; iptables -I FORWARD -j DOCKER-USER; iptables -P FORWARD DROP",
    "iptables -P FORWARD ACCEPT",
  );
  expect((await order({ do: "restored" })).result).toEqual(["DOCKER-USER"]);
  await expect.poll(async () => (await ways())["forward"], SLOW).toBe("passes");
  await text(0, "sh", "-c", "iptables -F FORWARD; iptables -F DOCKER-USER; iptables -X DOCKER-USER");
  expect((await order({ do: "restored" })).result).toEqual([]);
  await expectFound("forward", {
    evidence:
      "table ip filter, chain FORWARD: policy drop; Docker's chain DOCKER-USER, which holds this node's rule, is not there",
    wayOut: expect.stringContaining("restart Docker"),
  });
});

test("a rule of the operator before this node's own in DOCKER-USER is named and stays", async () => {
  await during(
    "iptables -N DOCKER-USER; iptables -I FORWARD -j DOCKER-USER",
    "iptables -F FORWARD; iptables -F DOCKER-USER; iptables -X DOCKER-USER",
  );
  await order({ do: "restored" });
  await text(0, "sh", "-c", "iptables -I DOCKER-USER -j DROP");
  expect((await order({ do: "restored" })).result).toEqual([]);
  await expectFound("forward", { evidence: expect.stringContaining("chain DOCKER-USER: rule") });
});

test("forwarding that is switched off is switched on again, and the watcher notices it", async () => {
  const earlier = await counts();
  await order({ do: "watch" });
  onTestFinished(async () => void (await order({ do: "unwatch" })));
  await expect.poll(async () => (await counts()).host).toBeGreaterThan(earlier.host);
  await text(0, "sysctl", "-qw", "net.ipv4.ip_forward=0");
  await expect.poll(() => text(0, "sysctl", "-n", "net.ipv4.ip_forward")).toBe("1");
  await expect.poll(async () => (await ways())["forward"], SLOW).toBe("passes");
  const { host } = await counts();
  await text(0, "nft", "add", "table", "inet", "site");
  onTestFinished(async () => void (await text(0, "nft", "delete", "table", "inet", "site")));
  await expect.poll(async () => (await counts()).host).toBeGreaterThan(host);
});

test("a link to the outside that forwards nothing is named, because replies come over it", async () => {
  await during("sysctl -qw net.ipv4.conf.world.forwarding=0", "sysctl -qw net.ipv4.conf.world.forwarding=1");
  await expectFound("forward", {
    evidence: "the kernel setting net.ipv4.conf.world.forwarding is 0",
  });
});

test("the probe's own table wakes no watcher", async () => {
  const earlier = await counts();
  await order({ do: "watch" });
  onTestFinished(async () => void (await order({ do: "unwatch" })));
  await expect.poll(async () => (await counts()).host).toBeGreaterThan(earlier.host);
  // What the watcher notices of its own start may come late.
  const looks: string[] = [];
  const standStill = async () => {
    looks.push(JSON.stringify(await counts()));
    return looks.length > 2 && new Set(looks.slice(-3)).size === 1;
  };
  await expect.poll(standStill, { interval: 1_000 }).toBe(true);
  const before = await counts();
  await ways();
  expect(await counts()).toEqual(before);
});
