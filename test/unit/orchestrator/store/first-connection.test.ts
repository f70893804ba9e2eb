/** The start of an orchestrator whose PostgreSQL server is not there yet. */

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { DatabaseError } from "pg";
import { expect, test } from "vitest";
import { openDatabase } from "../../../../orchestrator/store/database.ts";
import { LIMIT_MS, whenReached } from "../../../../orchestrator/store/postgres/first-connection.ts";
import { createLog } from "../../../../shared/program/log.ts";

const refused = () => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", syscall: "connect" });
const said = (code: string) => Object.assign(new DatabaseError("the server said so", 0, "error"), { code });

/** A way to wait with short breaks, and what it has logged. */
function waiting(limitMs = 60_000) {
  const lines: string[] = [];
  const log = createLog({ component: "test", destination: { write: (line) => void lines.push(line) } });
  return { options: { log, limitMs, betweenMs: 1 }, lines };
}

/** Fails so often with the error, and then opens. */
function opening(failures: number, error: Error) {
  const state = { tries: 0 };
  const open = () => (++state.tries > failures ? Promise.resolve("opened") : Promise.reject(error));
  return { open, state };
}

test.each([
  ["refuses connections", refused()],
  ["has a name that is not known yet", Object.assign(new Error("getaddrinfo EAI_AGAIN"), { code: "EAI_AGAIN" })],
  ["has no socket yet", Object.assign(new Error("connect ENOENT"), { code: "ENOENT", syscall: "connect" })],
  ["is starting up", said("57P03")],
])("a start waits for a database server that %s, and says so once", async (_, error) => {
  const { open, state } = opening(2, error);
  const { options, lines } = waiting();
  expect(await whenReached(open, options)).toBe("opened");
  expect(state.tries).toBe(3);
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    msg: "the database cannot be reached yet: waiting for it",
    err: { message: error.message },
  });
});

test.each([
  ["a password that is not accepted", said("28P01")],
  ["a database that does not exist", said("3D000")],
  ["a certificate that is not trusted", Object.assign(new Error("self-signed"), { code: "SELF_SIGNED_CERT_IN_CHAIN" })],
  ["a file that is not there", Object.assign(new Error("ENOENT"), { code: "ENOENT", syscall: "open" })],
])("%s is said at once", async (_, error) => {
  const { open, state } = opening(1, error);
  await expect(whenReached(open, waiting().options)).rejects.toBe(error);
  expect(state.tries).toBe(1);
});

test("the wait ends with what the dial says, as the database throws it", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  const { options, lines } = waiting(100);
  const opened = whenReached(() => openDatabase(`postgresql://nobody@127.0.0.1:${port}/none`), options);
  await expect(opened).rejects.toThrow("ECONNREFUSED");
  expect(lines).toHaveLength(1);
});

test("a program that waits at each start ends less often than its unit allows in a minute", () => {
  const unit = readFileSync(new URL("../../../../scripts/systemd/svc-orchestrator.service", import.meta.url), "utf8");
  const numberOf = (name: string) => Number(new RegExp(`^${name}=(\\d+)$`, "m").exec(unit)?.[1]);
  expect(numberOf("StartLimitBurst") * LIMIT_MS).toBeGreaterThan(numberOf("StartLimitIntervalSec") * 1_000);
});
