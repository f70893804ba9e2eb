import { expect, test } from "vitest";
import { planNetwork } from "../../../../agent/network/addresses.ts";
import { hostLinks } from "../../../../agent/network/links.ts";

const plan = planNetwork("svc", "10.213.0.0/16");

/** What `ip` is told when a sandbox's link is made. */
async function told(hasIpv6: boolean): Promise<string> {
  const inputs: unknown[] = [];
  const links = hostLinks(
    plan,
    async (_program, _args, options) => {
      inputs.push(options?.input);
      return "";
    },
    hasIpv6,
  );
  await links.add(plan.slot(7));
  return inputs.join("");
}

test("both ends of a link come up without an address of IPv6", async () => {
  const text = await told(true);
  expect(text).toContain("link set svc-7 addrgenmode none up\n");
  expect(text).toContain("link set eth0 addrgenmode none up\n");
});

test("a kernel that was started with ipv6.disable=1 is told nothing of IPv6, which it refuses", async () => {
  const text = await told(false);
  expect(text).toContain("link set svc-7 up\n");
  expect(text).toContain("link set eth0 up\n");
  expect(text).not.toContain("addrgenmode");
});
