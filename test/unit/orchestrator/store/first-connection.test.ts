/** The start of an orchestrator whose PostgreSQL server is not there yet. */

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { DatabaseError } from "pg";
import { expect, test, vi } from "vitest";
import { openDatabase } from "../../../../orchestrator/store/database.ts";
import { LIMIT_MS, whenReached } from "../../../../orchestrator/store/postgres/first-connection.ts";

const refused = () => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", syscall: "connect" });
const said = (code: string) => Object.assign(new DatabaseError("the server said so", 0, "error"), { code });
const waiting = () => ({ log: { warn: vi.fn() }, limitMs: 60_000, betweenMs: 1 });

test.each([
  ["refuses connections", refused()],
  ["has a name that is not known yet", Object.assign(new Error("getaddrinfo EAI_AGAIN"), { code: "EAI_AGAIN" })],
  ["has no socket yet", Object.assign(new Error("connect ENOENT"), { code: "ENOENT", syscall: "connect" })],
  ["is starting up", said("57P03")],
])("a start waits for a database server that %s, and says so once", async (_, error) => {
  const open = vi.fn().mockRejectedValueOnce(error).mockRejectedValueOnce(error).mockResolvedValue("opened");
  const options = waiting();
  expect(await whenReached(open, options)).toBe("opened");
  expect(open).toHaveBeenCalledTimes(3);
  expect(options.log.warn.mock.calls).toEqual([
    [{ err: error, limitMs: 60_000 }, "the database cannot be reached yet: waiting for it"],
  ]);
});

test.each([
  ["a password that is not accepted", said("28P01")],
  ["a database that does not exist", said("3D000")],
  ["a certificate that is not trusted", Object.assign(new Error("self-signed"), { code: "SELF_SIGNED_CERT_IN_CHAIN" })],
  ["a file that is not there", Object.assign(new Error("ENOENT"), { code: "ENOENT", syscall: "open" })],
])("%s is said at once", async (_, error) => {
  const open = vi.fn().mockRejectedValue(error);
  await expect(whenReached(open, waiting())).rejects.toBe(error);
  expect(open).toHaveBeenCalledOnce();
});

test("the wait ends with what the dial says, as the database throws it", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  const options = { ...waiting(), limitMs: 100 };
  const opening = whenReached(() => openDatabase(`postgresql://nobody@127.0.0.1:${port}/none`), options);
  await expect(opening).rejects.toThrow("ECONNREFUSED");
  expect(options.log.warn).toHaveBeenCalledOnce();
});

test("a program that waits at each start ends less often than its unit allows in a minute", () => {
  const unit = readFileSync(new URL("../../../../scripts/systemd/svc-orchestrator.service", import.meta.url), "utf8");
  const numberOf = (name: string) => Number(new RegExp(`^${name}=(\\d+)$`, "m").exec(unit)?.[1]);
  expect(numberOf("StartLimitBurst") * LIMIT_MS).toBeGreaterThan(numberOf("StartLimitIntervalSec") * 1_000);
});
