/** Which pauses end connections: those of sandboxes that have a connection to the outside. */

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { hasOutside, leavesSandbox } from "../../../../agent/snapshots/connections/leaving.ts";
import { outsideConnections } from "../../../../agent/snapshots/connections/outside.ts";
import { createLog } from "../../../../shared/program/log.ts";

const HEAD =
  "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     \n";
const listOf = (...sockets: readonly (readonly [remote: string, state: string])[]) =>
  HEAD +
  sockets
    .map(
      ([remote, state], at) =>
        `   ${at}: 0700D50A:1F90 ${remote} ${state} 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n`,
    )
    .join("");

test.each<[string, string, string, boolean]>([
  ["an open connection to an address outside", "0A0200C0:01BB", "01", true],
  ["one that is being made", "0A0200C0:01BB", "02", true],
  ["one whose peer has ended its stream", "0A0200C0:01BB", "08", true],
  ["one that the node's proxy has made", "0100D50A:9C40", "01", true],
  ["one by IPv6's form of such an address", "0000000000000000FFFF00000A0200C0:01BB", "01", true],
  ["one to an address of IPv6", "B80D0120000000000000000001000000:01BB", "01", true],
  ["one to an address that ends in .127", "7F0200C0:01BB", "01", true],
  ["one inside", "0100007F:1538", "01", false],
  ["one inside, to another loopback address", "0501007F:1538", "01", false],
  ["one inside by IPv6", "00000000000000000000000001000000:1538", "01", false],
  ["one inside by IPv6's form of the address", "0000000000000000FFFF00000100007F:1538", "01", false],
  ["one that has ended", "0A0200C0:01BB", "06", false],
  ["a server", "00000000:0000", "0A", false],
])("%s (%s, %s) leaves the sandbox: %s", (_what, remote, state, leaves) => {
  expect(hasOutside(listOf(["00000000:0000", "0A"], [remote, state]))).toBe(leaves);
});

test("a connection inside is in the kernel's own list as one that stays", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const ending = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync("/proc/self/net/tcp", "utf8")
    .split("\n")
    .filter((line) => line.includes(ending));
  socket.destroy();
  server.close();
  expect(lines.length).toBeGreaterThanOrEqual(2);
  expect(hasOutside(lines.join("\n"))).toBe(false);
});

test("where the lists cannot be read, connections may leave", async () => {
  expect(await leavesSandbox(0)).toBe(true);
});

test.each([true, false])("a pause opens the network and ends connections where some leave (%s)", async (leave) => {
  const done: string[] = [];
  const note = (what: string) => {
    done.push(what);
    return Promise.resolve();
  };
  const connections = outsideConnections({
    connections: { areOutside: () => Promise.resolve(leave), endOutside: () => note("end") } as never,
    gate: { open: () => note("open") } as never,
    log: createLog({ component: "test", level: "silent" }),
  });
  const container = { pid: 7, slot: {} };
  await connections.end({ container } as never);
  expect(done).toEqual(leave ? ["open", "end"] : []);
  // The thaw finds that this is done.
  await connections.ended(container as never);
  expect(done).toEqual(leave ? ["open", "end"] : []);
});
