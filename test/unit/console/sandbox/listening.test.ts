/** Ports that programs of a sandbox listen at, from the kernel's tables. */

import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { listeningOf } from "../../../../console/src/sandbox/ports/listening.ts";

const HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
const REST = "00000000:00000000 00:00000000 00000000";
const line = (local: string, state: string, uid = 1000) =>
  `   0: ${local} 00000000:0000 ${state} ${REST}  ${uid}        0 1`;

test.each([
  ["at every address", [line("00000000:1F40", "0A")], [{ port: 8000, at: "every address", uid: 1000 }]],
  ["at the loopback", [line("0100007F:1F90", "0A", 0)], [{ port: 8080, at: "the sandbox itself", uid: 0 }]],
  ["at another loopback address", [line("3500007F:0035", "0A", 0)], [{ port: 53, at: "the sandbox itself", uid: 0 }]],
  ["at one address", [line("0200A8C0:0050", "0A")], [{ port: 80, at: "one address", uid: 1000 }]],
  [
    "in both families",
    [line("0100007F:0BB8", "0A"), line("00000000000000000000000000000000:0BB8", "0A")],
    [{ port: 3000, at: "every address", uid: 1000 }],
  ],
  [
    "at the loopback of IPv6",
    [line("00000000000000000000000001000000:1F40", "0A")],
    [{ port: 8000, at: "the sandbox itself", uid: 1000 }],
  ],
  ["that is connected and does not listen", [line("0100007F:1F90", "01")], []],
  ["that is the platform's own", [line("00000000:C33F", "0A", 0)], []],
  ["whose line is broken", ["   0: 0100007F 0A", "", "cat: /proc/net/tcp6: No such file or directory"], []],
])("a socket %s is told so", (_name, lines, expected) => {
  expect(listeningOf([HEAD, ...lines, ""].join("\n"))).toEqual(expected);
});

test("ports are in order, and no more than a page can show", () => {
  const lines = Array.from({ length: 300 }, (_none, index) =>
    line(`00000000:${(5_000 - index).toString(16).toUpperCase().padStart(4, "0")}`, "0A"),
  );
  const found = listeningOf(lines.join("\n"));
  expect([found.length, found[0]?.port, found.at(-1)?.port]).toEqual([200, 4_701, 4_900]);
});

test("a server of this machine is in the kernel's own table", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const listed = listeningOf(readFileSync("/proc/net/tcp", "utf8"));
  // Another program's servers may fill the list.
  if (listed.length < 200) expect(listed).toContainEqual({ port, at: "the sandbox itself", uid: process.getuid?.() });
});
