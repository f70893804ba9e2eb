/** The server's choice of clients when connections are scarce, and how it tells clients apart. */

import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { addressList, addressReader, clientOf } from "../../../../shared/http/connections/client-address.ts";
import { connectionLimits, promote } from "../../../../shared/http/connections/connection-limits.ts";
import { ConfigError } from "../../../../shared/program/config.ts";
import { descriptorLimit, roomFor, warnOfFewDescriptors } from "../../../../shared/program/descriptors.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });

function from(remoteAddress: string): Socket {
  const socket = Object.assign(new EventEmitter(), { remoteAddress, destroyed: false });
  return Object.assign(socket, {
    destroy() {
      if (socket.destroyed) return;
      socket.destroyed = true;
      socket.emit("close");
    },
  }) as unknown as Socket;
}

function room(total: number, reserved: number, perAddress: number) {
  return connectionLimits({ total, reserved, perAddress, name: "test", log });
}

const OTHER = "198.51.100.7";

describe("connections of one address", () => {
  test("are refused above its share, and others get in; what closes makes room", () => {
    const limits = room(100, 10, 2);
    const [a, b, c] = [from(OTHER), from(OTHER), from(OTHER)];
    expect([a, b, c].map((socket) => limits.admit(socket))).toEqual([true, true, false]);
    expect(c.destroyed).toBe(true);
    expect(limits.admit(from("198.51.100.8"))).toBe(true);
    a.destroy();
    expect(limits.admit(from(OTHER))).toBe(true);
    expect(limits.count).toBe(3);
  });

  test("count until they show a node's or an operator's credentials, not only a key", () => {
    const limits = room(100, 10, 1);
    const keyed = from(OTHER);
    limits.admit(keyed);
    promote(keyed, "known");
    expect(limits.admit(from(OTHER))).toBe(false);
    promote(keyed, "ours");
    const second = from(OTHER);
    expect(limits.admit(second)).toBe(true);
    keyed.destroy();
    expect(limits.admit(from(OTHER))).toBe(false);
    second.destroy();
    expect(limits.count).toBe(0);
  });

  test("are not limited on loopback, where the platform's own programs are, nor from shared addresses", () => {
    const limits = connectionLimits({
      total: 100,
      reserved: 10,
      perAddress: 1,
      name: "test",
      log,
      isShared: (address) => address === OTHER,
    });
    for (const address of ["127.0.0.1", "127.0.0.1", "::1", "::1", "::ffff:127.0.0.1", OTHER, OTHER]) {
      expect(limits.admit(from(address)), address).toBe(true);
    }
    expect(limits.admit(from("127.0.0.2"))).toBe(true);
    expect(limits.admit(from("127.0.0.2"))).toBe(false);
  });
});

describe("when all are in use", () => {
  test("the one that has shown nothing for longest makes room for the next", () => {
    const limits = room(4, 1, 100);
    const sockets = [from("198.51.100.1"), from("198.51.100.2"), from("198.51.100.3")];
    for (const socket of sockets) expect(limits.admit(socket)).toBe(true);
    promote(sockets[0] as Socket, "known");
    expect(limits.admit(from(OTHER))).toBe(true);
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    expect(limits.count).toBe(3);
  });

  test("by clients with keys, others are refused, and the platform's own programs get the reserve and no more", () => {
    const limits = room(4, 1, 100);
    const keyed = [from("198.51.100.1"), from("198.51.100.2"), from("198.51.100.3")];
    for (const socket of keyed) {
      limits.admit(socket);
      promote(socket, "known");
    }
    expect(limits.admit(from(OTHER))).toBe(false);
    const agent = from("127.0.0.1");
    expect(limits.admit(agent)).toBe(true);
    promote(agent, "ours");
    expect(limits.admit(from("127.0.0.1"))).toBe(false);
    expect(limits.admit(from(OTHER))).toBe(false);
    expect(keyed.some(({ destroyed }) => destroyed)).toBe(false);
  });

  test("a thousand connections without credentials do not keep an operator out", () => {
    const limits = room(20, 2, 5);
    for (let index = 0; index < 1_000; index++) limits.admit(from(`198.51.100.${index % 200}`));
    expect(limits.count).toBeLessThanOrEqual(18);
    expect(limits.admit(from(OTHER))).toBe(true);
  });
});

test("a connection that closes before it is admitted is not counted", () => {
  const limits = room(4, 1, 100);
  const gone = from(OTHER);
  gone.destroy();
  expect(limits.admit(gone)).toBe(false);
  expect(limits.count).toBe(0);
});

test.each([
  ["198.51.100.7", "198.51.100.7"],
  ["::ffff:198.51.100.7", "198.51.100.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0db8:0001:0002::1", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "::1"],
])("the address %s is counted as the client %s", (address, client) => {
  expect(clientOf(address)).toBe(client);
});

test("a list of proxies has addresses and ranges, and nothing else", () => {
  const isProxy = addressList("SVC_TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.1,2001:db8::/32");
  const found = ["10.1.2.3", "192.0.2.1", "192.0.2.2", "2001:db8::5", "::1", "x"].map((address) => isProxy(address));
  expect(found).toEqual([true, true, false, true, false, false]);
  for (const wrong of [
    "host",
    "10.0.0.0/33",
    "10.0.0.0/",
    "10.0.0.0/x",
    "10.0.0.0/08",
    "10.0.0.0/8/8",
    "fe80::1%eth0",
  ]) {
    expect(() => addressList("SVC_TRUSTED_PROXIES", wrong), wrong).toThrow(ConfigError);
  }
});

test.each([
  ["198.51.100.7", "192.0.2.9", "198.51.100.7"],
  ["::ffff:10.0.0.1", "192.0.2.9", "192.0.2.9"],
  ["10.0.0.1", "203.0.113.1, 192.0.2.9, 10.0.0.2", "192.0.2.9"],
  ["10.0.0.1", "not an address", "10.0.0.1"],
  ["10.0.0.1", undefined, "10.0.0.1"],
])("a request from %s for %s is of %s when proxies are in 10.0.0.0/8", (remoteAddress, forwarded, client) => {
  const read = addressReader(addressList("SVC_TRUSTED_PROXIES", "10.0.0.0/8"));
  const request = { socket: { remoteAddress }, headers: { "x-forwarded-for": forwarded } };
  expect(read(request as unknown as IncomingMessage)).toBe(client);
});

test("room follows from the limit of open files, unless an operator wants another", () => {
  const limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            20000      40000      files\n";
  expect(descriptorLimit(() => limits)).toBe(20_000);
  expect(descriptorLimit(() => "")).toBe(1_024);
  expect(descriptorLimit()).toBeGreaterThan(0);
  const derived = { total: 0, perAddress: 0 };
  expect(roomFor(1 / 8, derived, 20_000)).toEqual({ total: 2_500, reserved: 312, perAddress: 625 });
  expect(roomFor(1 / 8, derived, 1_000_000).total).toBe(16_384);
  expect(roomFor(1 / 8, { total: 40, perAddress: 3 }, 20_000)).toEqual({ total: 40, reserved: 5, perAddress: 3 });
});

test("a limit of open files that leaves few connections is reported with the way out, a sufficient one is not", () => {
  let said = "";
  const telling = createLog({ component: "test", destination: { write: (line: string) => void (said += line) } });
  for (const limit of [4_096, 20_000, Number.MAX_SAFE_INTEGER]) warnOfFewDescriptors(telling, limit);
  expect(said).toBe("");
  warnOfFewDescriptors(telling, 1_024);
  expect(JSON.parse(said)).toMatchObject({ level: 40, limit: 1_024, msg: expect.stringContaining("LimitNOFILE=") });
});
