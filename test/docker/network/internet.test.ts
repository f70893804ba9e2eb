/**
 * The test internet itself, seen from the machine and from a plain namespace behind it: other tests rely on this behaviour.
 */

import { execFile } from "node:child_process";
import { Resolver } from "node:dns/promises";
import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { request as requestHttp } from "node:http";
import { request } from "node:https";
import { connect } from "node:net";
import { dirname } from "node:path";
import { SocksClient } from "socks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { authorityFile } from "../../support/internet/certificates.ts";
import { openInternet } from "../../support/internet/internet.ts";
import {
  ADDRESS,
  COUNTED,
  FORBIDDEN,
  internetPlan,
  PORT,
  SOCKS_PORT,
  SOCKS_USER,
} from "../../support/internet/plan.ts";
import { startInternet } from "../../support/internet/start.ts";
import { run } from "../../support/platform/programs.ts";

// This internet has a name of its own, because the platform of the tests has another internet.
const plan = internetPlan("inett");
const internet = openInternet("inett");
let running: { stop(): Promise<void> } | undefined;

// A namespace like a sandbox's: its link has a sandbox's name, and the machine is in between.
const CLIENT = "inett-client";
const CLIENT_LINK = "svcinett-1";
const CLIENT_ADDRESS = "10.254.254.2";
// This one address of the range is behind another link of the machine.
const ELSEWHERE = "198.51.100.250";
const OTHER_LINK = "inett-other";

beforeAll(async () => {
  running = await startInternet("inett");
  await run("ip", ["netns", "del", CLIENT]).catch(() => undefined);
  await run("ip", ["netns", "add", CLIENT]);
  await run("ip", ["link", "add", CLIENT_LINK, "type", "veth", "peer", "name", "eth0", "netns", CLIENT]);
  await run("ip", ["addr", "add", "10.254.254.1/30", "dev", CLIENT_LINK]);
  await run("ip", ["link", "set", CLIENT_LINK, "up"]);
  await run("ip", ["-n", CLIENT, "addr", "add", `${CLIENT_ADDRESS}/30`, "dev", "eth0"]);
  await run("ip", ["-n", CLIENT, "link", "set", "eth0", "up"]);
  await run("ip", ["-n", CLIENT, "route", "add", "default", "via", "10.254.254.1"]);
  await run("ip", ["link", "add", OTHER_LINK, "type", "veth", "peer", "name", "other", "netns", CLIENT]);
  await run("ip", ["link", "set", OTHER_LINK, "up"]);
  await run("ip", ["-n", CLIENT, "link", "set", "other", "up"]);
  await run("ip", ["route", "add", `${ELSEWHERE}/32`, "dev", OTHER_LINK]);
}, 1_200_000);

afterAll(async () => {
  await run("ip", ["netns", "del", CLIENT]).catch(() => undefined);
  await running?.stop();
  // No later instance has this name, so its authority is of no more use.
  await rm(dirname(plan.authorityDirectory), { recursive: true, force: true });
  expect(existsSync(`/run/netns/${plan.namespace}`)).toBe(false);
});

test("names lead to addresses, wildcards to any depth, and a hostile zone changes its mind", async () => {
  expect(await ask("google.example")).toEqual([ADDRESS.google]);
  expect(await ask("a.b.deep.google.example")).toEqual([ADDRESS.mapsGoogle]);
  expect(await ask("deep.google.example")).toEqual([]);
  const turns = [await ask("rebind.test"), await ask("rebind.test"), await ask("rebind.test")];
  expect(turns.flat().toSorted()).toEqual(["10.255.255.1", "169.254.200.1", ADDRESS.rebind]);
  await internet.setZone("new.test", { a: ["198.51.100.77"] });
  expect(await ask("new.test")).toEqual(["198.51.100.77"]);
});

test("every address answers HTTP with itself, and HTTPS with the requested name", async () => {
  const ca = await readFile(authorityFile(plan.authorityDirectory));
  const watch = await internet.watch();
  for (const address of [ADDRESS.eight, ADDRESS.one, "198.51.100.200"]) {
    expect(await getPlain(address)).toMatchObject({ address, port: 80, host: "any.test" });
  }
  const secure = await new Promise<string>((resolve, reject) => {
    request({ host: ADDRESS.google, servername: "google.example", ca, headers: { "x-told": "yes" } }, (response) => {
      response.setEncoding("utf8").on("data", resolve);
    })
      .on("error", reject)
      .end();
  });
  expect(JSON.parse(secure)).toMatchObject({ sni: "google.example", headers: { "x-told": "yes" } });
  expect(await watch.all("request")).toHaveLength(4);
});

test("a WebSocket server answers with the message that it receives", async () => {
  const socket = new WebSocket(`ws://${ADDRESS.echo}/`);
  const said = new Promise<string>((resolve) => {
    socket.on("message", (data: Buffer) => resolve(data.toString("utf8")));
  });
  await new Promise<void>((resolve, reject) => {
    socket.on("open", resolve).on("error", reject);
  });
  socket.send("ü");
  expect(await said).toBe("ü");
  socket.close();
});

test("connections may be half-closed by the client or by the server", async () => {
  expect(await exchange(ADDRESS.keys, PORT.halfClose, "after-fin\nhello")).toBe("received 5\n");
  const watch = await internet.watch();
  const socket = connect({ host: ADDRESS.keys, port: PORT.halfClose, allowHalfOpen: true });
  socket.write("first-fin\n");
  await new Promise<void>((resolve) => {
    socket.on("end", resolve).resume();
  });
  socket.end("x".repeat(1000));
  await expect.poll(() => watch.all("half-closed")).toMatchObject([{ receivedAfter: 1000 }]);
});

test("SOCKS connects by name and by address, with and without a password, and again after it was killed", async () => {
  const watch = await internet.watch();
  const open = { host: ADDRESS.socks, port: SOCKS_PORT, type: 5 } as const;
  const locked = { host: ADDRESS.socksWithPassword, port: SOCKS_PORT, type: 5 } as const;
  const named = { host: "google.example", port: 80 };
  const go = async (proxy: typeof open | typeof locked, destination: { host: string; port: number }) => {
    const { socket } = await SocksClient.createConnection({ proxy, destination, command: "connect", timeout: 20_000 });
    socket.destroy();
  };
  await go(open, named);
  await go(open, { host: ADDRESS.eight, port: 80 });
  await go({ ...locked, userId: SOCKS_USER.username, password: SOCKS_USER.password } as typeof locked, named);
  await expect(go({ ...locked, userId: "x", password: "y" } as typeof locked, named)).rejects.toThrow();
  expect(await watch.all("socks")).toMatchObject([
    { atyp: "domain", host: "google.example", server: ADDRESS.socks },
    { atyp: "ipv4", host: ADDRESS.eight },
    { atyp: "domain", username: SOCKS_USER.username, server: ADDRESS.socksWithPassword },
  ]);
  await internet.killSocks();
  await expect(go(open, named)).rejects.toThrow();
  await internet.startSocks();
  await go(open, named);
});

test("packets are counted at the border, and by sandbox on the host, which lets none of them leave the machine", async () => {
  const udp = (address: string) =>
    `import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("${address}", 7))`;
  const to = { address: COUNTED.datagrams, port: 7, protocol: "udp" };
  expect(await internet.packets("border", to)).toBe(0);
  for (const address of [to.address, to.address, ELSEWHERE]) {
    await run("ip", ["netns", "exec", CLIENT, "python3", "-c", udp(address)]);
  }
  await expect.poll(() => internet.packets("border", to)).toBe(2);
  expect(await internet.packets("passed", { ...to, source: CLIENT_ADDRESS })).toBe(2);
  // No rule lets the packet through; the table counts and drops it.
  expect(await internet.packets("passed", { address: ELSEWHERE })).toBe(1);
});

test("forbidden ranges exist there, so that a sandbox that cannot reach them was stopped", async () => {
  for (const address of FORBIDDEN) expect(await getPlain(address)).toMatchObject({ address });
});

test("the test internet is gone when the process that started it is killed", async () => {
  await running?.stop();
  const program = `import { startInternet } from "./test/support/internet/start.ts"; await startInternet("inett"); console.log("up"); setInterval(() => {}, 1000);`;
  const child = execFile(process.execPath, ["--import", "tsx", "--input-type=module", "-e", program]);
  await new Promise((resolve) => {
    child.stdout?.on("data", resolve);
  });
  expect(existsSync(`/run/netns/${plan.namespace}`)).toBe(true);
  child.kill("SIGKILL");
  await expect.poll(() => existsSync(`/run/netns/${plan.namespace}`)).toBe(false);
  running = await startInternet("inett");
  expect(await getPlain(ADDRESS.eight)).toMatchObject({ address: ADDRESS.eight });
});

async function ask(name: string): Promise<readonly string[]> {
  const resolver = new Resolver();
  resolver.setServers([ADDRESS.dns]);
  return resolver.resolve4(name).catch(() => []);
}

function getPlain(address: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    requestHttp({ host: address, headers: { host: "any.test" }, timeout: 3000 }, (response) => {
      response.setEncoding("utf8").on("data", (text: string) => resolve(JSON.parse(text)));
    })
      .on("error", reject)
      .end();
  });
}

function exchange(host: string, port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, allowHalfOpen: true });
    let reply = "";
    socket.on("data", (chunk) => {
      reply += chunk.toString("utf8");
    });
    socket.on("error", reject).on("end", () => resolve(reply));
    socket.end(text);
  });
}
