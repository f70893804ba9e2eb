import { expect, test } from "vitest";
import { planNetwork } from "../../../../agent/network/addresses.ts";

const plan = planNetwork("svc", "10.213.0.0/16");

test("the gateway has the first address and slot n the n-th", () => {
  expect(plan.gateway).toBe("10.213.0.1");
  expect(plan.slot(2)).toMatchObject({ address: "10.213.0.2", link: "svc-2", netnsPath: "/run/netns/svc-2" });
  expect(plan.slot(300)).toMatchObject({ address: "10.213.1.44", link: "svc-300" });
  expect(plan.slot(65_534).address).toBe("10.213.255.254");
});

test.each([0, 1, 65_535, 1.5, -2])("there is no slot %s", (number) => {
  expect(() => plan.slot(number)).toThrow();
});

test("both ends of a link have addresses of their own, which are local and not multicast", () => {
  const { hostMac, sandboxMac } = plan.slot(7);
  expect(hostMac).not.toBe(sandboxMac);
  for (const mac of [hostMac, sandboxMac]) {
    expect(mac).toMatch(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/);
    expect(Number.parseInt(mac.slice(0, 2), 16) & 0b11).toBe(0b10);
  }
});

test.each([
  ["svc-7", 7],
  ["svc-0", undefined],
  ["svc-1", undefined],
  ["svc-07", undefined],
  ["svc-7x", undefined],
  ["svct-7", undefined],
  ["svc0", undefined],
  ["svc-99999", undefined],
])("the link %s is of slot %s", (link, number) => {
  expect(plan.numberOf(link)).toBe(number);
});

test.each(["10.213.0.0", "10.213.0.1/16", "10.213.0.0/33", "10.213.0.0/30", "300.0.0.0/16", "fd00::/64", "x"])(
  "%s is refused as a subnet",
  (subnet) => {
    expect(() => planNetwork("svc", subnet)).toThrow(/subnet/);
  },
);

test("the longest network name and the highest slot fit into a link name", () => {
  expect(planNetwork("abcdefgh", "10.0.0.0/8").slot(99_999).link.length).toBeLessThanOrEqual(15);
});
