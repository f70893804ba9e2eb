/** `egressProxy`: allowed traffic leaves through the given SOCKS5 server, or not at all. */

import { describe, expect, test } from "vitest";
import { openInternet } from "../../support/internet/internet.ts";
import { ADDRESS, FORBIDDEN, SOCKS_PORT, SOCKS_USER } from "../../support/internet/plan.ts";
import { api, openPlatform } from "../../support/platform/platform.ts";
import {
  ask,
  forkOf,
  greeting,
  halfClose,
  NOTHING,
  pauseAndResume,
  putNetwork,
  reach,
  reached,
  resolvesAt,
  sandboxWith,
} from "../../support/sandbox/egress.ts";
import { sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const internet = openInternet();
const { eight, one } = ADDRESS;
const open = { address: `${ADDRESS.socks}:${SOCKS_PORT}` };
const locked = { address: `${ADDRESS.socksWithPassword}:${SOCKS_PORT}`, ...SOCKS_USER };
/** Counts connections that did not go through a SOCKS server: they come from the machine's address. */
const direct = (address: string) => internet.packets("border", { address });

describe("a sandbox with an egress proxy", () => {
  test("asks it for addresses, and for names where a name is what was allowed", async () => {
    const sandbox = await sandboxWith({ egressProxy: open, allowOut: ["google.example", eight], denyOut: NOTHING });
    const watch = await internet.watch();
    const before = [await direct(ADDRESS.google), await direct(eight)];
    expect(await ask(sandbox, "https://google.example/")).toMatchObject({ sni: "google.example" });
    expect(await ask(sandbox, `http://${eight}/`)).toMatchObject({ address: eight });
    expect(await watch.all("socks")).toMatchObject([
      { atyp: "domain", host: "google.example", port: 443, reply: 0 },
      { atyp: "ipv4", host: eight, port: 80, reply: 0 },
    ]);
    expect([await direct(ADDRESS.google), await direct(eight)]).toEqual(before);
  });

  test("denies first, asks the proxy second", async () => {
    const sandbox = await sandboxWith({ egressProxy: open, allowOut: [eight], denyOut: NOTHING });
    const watch = await internet.watch();
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "blocked" });
    expect((await watch.all("socks")).map(({ host }) => host)).toEqual([eight]);
  });

  test("uses its credentials, and nothing leaves when they are wrong", async () => {
    const sandbox = await sandboxWith({ egressProxy: locked });
    const watch = await internet.watch();
    expect(await reach(sandbox, eight)).toEqual({ [eight]: "ok" });
    expect(await watch.all("socks")).toMatchObject([
      { username: SOCKS_USER.username, server: ADDRESS.socksWithPassword },
    ]);
    await sandbox.updateNetwork({ egressProxy: { ...locked, password: "wrong" } });
    const before = await direct(eight);
    expect(await reach(sandbox, eight)).toEqual({ [eight]: "blocked" });
    expect(await direct(eight)).toBe(before);
  });

  test("fails closed while it is away, and works again when it is back", async () => {
    const sandbox = await sandboxWith({ egressProxy: open });
    const before = await direct(eight);
    await internet.killSocks();
    try {
      expect(await reached(sandbox, `https://${eight}/`, `http://${eight}/`, `http://${eight}:8080/`)).toEqual([
        "blocked",
        "blocked",
        "blocked",
      ]);
    } finally {
      await internet.startSocks();
    }
    expect(await reach(sandbox, eight)).toEqual({ [eight]: "ok" });
    expect(await direct(eight)).toBe(before);
  });

  test("can be given another one, or none, while it runs", async () => {
    const sandbox = await sandboxWith();
    const watch = await internet.watch();
    for (const egressProxy of [open, locked, open]) {
      await sandbox.updateNetwork({ egressProxy });
      expect(await reach(sandbox, eight)).toEqual({ [eight]: "ok" });
    }
    expect((await watch.all("socks")).map(({ server }) => server)).toEqual([
      ADDRESS.socks,
      ADDRESS.socksWithPassword,
      ADDRESS.socks,
    ]);
    const before = await direct(eight);
    await sandbox.updateNetwork({});
    expect(await reach(sandbox, eight)).toEqual({ [eight]: "ok" });
    expect(await direct(eight)).toBeGreaterThan(before);
    expect(await watch.all("socks")).toHaveLength(3);
  });

  test("may reach private ranges behind it by TCP, and never directly", async () => {
    const sandbox = await sandboxWith({ egressProxy: open });
    const watch = await internet.watch();
    const [address] = FORBIDDEN;
    const before = await direct(address);
    expect(await ask(sandbox, `http://${address}/`)).toMatchObject({ address });
    expect(await watch.all("socks")).toMatchObject([{ atyp: "ipv4", host: address }]);
    expect(await direct(address)).toBe(before);
    expect(await internet.packets("passed", { address })).toBe(0);
  });

  test("sends no UDP", async () => {
    const sandbox = await sandboxWith({ egressProxy: open });
    expect(await resolvesAt(sandbox, ADDRESS.nine)).toBe(false);
    expect(await internet.packets("border", { address: ADDRESS.nine, protocol: "udp", port: 5300 })).toBe(0);
  });

  test("speaks protocols where the server comes first, and half-closes", async () => {
    const sandbox = await sandboxWith({ egressProxy: open });
    expect(await greeting(sandbox)).toMatch(/^SSH-2.0-TestInternet_1.0\n/);
    expect(await halfClose(sandbox)).toBe("received 5\nbye");
  });

  test("keeps it over pause and resume, and a fork has it too", async () => {
    const sandbox = await pauseAndResume(await sandboxWith({ egressProxy: locked }));
    const watch = await internet.watch();
    expect(await reach(sandbox, eight)).toEqual({ [eight]: "ok" });
    expect(await reach(await forkOf(sandbox), eight)).toEqual({ [eight]: "ok" });
    expect((await watch.all("socks")).map(({ username }) => username)).toEqual([
      SOCKS_USER.username,
      SOCKS_USER.username,
    ]);
  });

  test("combines with rules: the host's own certificate is checked at the far end of the tunnel", async () => {
    const rules = { "api.example": [{ transform: { headers: { "x-rule": "tunnelled" } } }] };
    const sandbox = await sandboxWith({ egressProxy: open, rules });
    const watch = await internet.watch();
    expect((await ask(sandbox, "https://api.example/", "")).headers["x-rule"]).toBe("tunnelled");
    expect(await watch.all("socks")).toMatchObject([{ host: "api.example", port: 443 }]);
  });

  test("is found by its name, unless that leads inside", async () => {
    const sandbox = await sandboxWith({ egressProxy: { address: `socks.example:${SOCKS_PORT}` } });
    expect(await reach(sandbox, eight)).toEqual({ [eight]: "ok" });
    for (const name of ["private.test", "metadata.test", "inside.test"]) {
      await sandbox.updateNetwork({ egressProxy: { address: `${name}:${SOCKS_PORT}` } });
      expect(await reach(sandbox, eight), name).toEqual({ [eight]: "blocked" });
    }
    expect(await internet.packets("border", { address: "10.255.255.1", port: SOCKS_PORT })).toBe(0);
  });
});

describe("an egress proxy", () => {
  const sandbox = sharedSandbox();

  test.each([
    ["127.0.0.1:1080"],
    ["localhost:1080"],
    ["10.0.0.1:1080"],
    ["169.254.169.254:1080"],
    ["192.168.1.1:1080"],
    ["100.64.0.1:1080"],
    ["0.0.0.0:1080"],
    ["2130706433:1080"],
    ["0x7f.1:1080"],
    ["[::1]:1080"],
    ["proxy.example"],
    ["proxy.example:0"],
    ["proxy.example:65536"],
    ["proxy.example:1080:1"],
    ["http://proxy.example:1080"],
    ["evil\u0000.example:1080"],
    [`${"a".repeat(64)}.example:1080`],
  ])("at %j is refused", async (address) => {
    expect((await putNetwork(platform, sandbox().sandboxId, { egressProxy: { address } })).status).toBe(400);
  });

  test.each([
    ["a password without a user", { password: "x" }],
    ["a long user", { username: "u".repeat(256) }],
    ["a password that is too long in bytes", { username: "u", password: "ü".repeat(128) }],
  ])("with %s is refused", async (_, credentials) => {
    const reply = await putNetwork(platform, sandbox().sandboxId, { egressProxy: { ...open, ...credentials } });
    expect(reply.status).toBe(400);
    expect(reply.text).not.toContain("üü");
  });

  test("is shown without its password, wherever it is shown", async () => {
    await sandbox().updateNetwork({ egressProxy: locked });
    const shown = { address: locked.address, username: locked.username };
    expect((await sandbox().getInfo()).network?.egressProxy).toEqual(shown);
    for (const path of [
      `/sandboxes/${sandbox().sandboxId}`,
      "/v2/sandboxes",
      `/sandboxes/${sandbox().sandboxId}/network/log`,
    ]) {
      expect((await api(platform, "GET", path)).text).not.toContain(SOCKS_USER.password);
    }
  });
});
