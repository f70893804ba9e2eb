/** Reports at the port of the API come from this machine, or through a proxy that ends TLS. */

import { expect, test } from "vitest";
import type { Auth } from "../../../../orchestrator/access/auth.ts";
import { withoutMembers } from "../../../../orchestrator/api/nodes-server.ts";

const auth = { node: () => "n7" } as unknown as Auth;
const node = (protocol: string, remoteAddress: string) =>
  withoutMembers(auth, undefined).node(
    "node",
    { protocol, raw: { socket: { remoteAddress } } } as never,
    {} as never,
    {} as never,
  );

test.each([
  ["http", "127.0.0.1"],
  ["http", "::1"],
  ["http", "::ffff:127.0.0.1"],
  ["https", "198.51.100.7"],
])("a report over %s from %s is taken", async (protocol, address) => {
  await expect(node(protocol, address)).resolves.toBe("n7");
});

test.each(["198.51.100.7", "::ffff:198.51.100.7", "2001:db8::7", ""])(
  "a report in clear from '%s' is refused, and the error names the join",
  async (address) => {
    await expect(node("http", address)).rejects.toThrow(
      "node 'n7' reports from another machine in clear: make a join token on the platform (POST /admin/join-tokens)",
    );
  },
);
