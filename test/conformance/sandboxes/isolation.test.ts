/** Targets that a sandbox cannot reach: other sandboxes, the host, the platform itself, and the secrets of its own envd. */

import { createServer, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import type { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();

describe("two sandboxes", () => {
  const first = sharedSandbox();
  const second = sharedSandbox();

  test("have addresses of their own and cannot reach each other, neither by TCP nor by UDP nor by ping", async () => {
    const there = await addressOf(second());
    expect(there).not.toBe(await addressOf(first()));
    await second().commands.run("python3 -m http.server 8000 --bind 0.0.0.0", { background: true, timeoutMs: 0 });
    await second().commands.run("until ss -Htln sport = :8000 | grep -q .; do sleep 0.05; done");
    expect((await second().commands.run(dial(there, 8000, 30))).stdout).toBe("connected\n");
    for (const port of [8000, 49983]) {
      expect((await first().commands.run(dial(there, port))).stdout, `port ${port}`).toBe("refused\n");
    }
    expect(
      (await first().commands.run(`ping -c1 -W1 ${there} >/dev/null 2>&1 && echo pong || echo silence`)).stdout,
    ).toBe("silence\n");
  });

  test("cannot take each other's address", async () => {
    const there = await addressOf(second());
    const { stdout } = await first().commands.run(
      `sudo ip addr add ${there}/32 dev eth0 2>&1 || true; python3 -c "
import socket
s = socket.socket(); s.settimeout(1)
try:
  s.bind(('${there}', 0)); s.connect(('${await gatewayOf(first())}', 53)); print('spoofed')
except OSError: print('no')"`,
    );
    expect(stdout.trim().split("\n").at(-1)).toBe("no");
  });

  test("do not see each other's processes, files or names", async () => {
    await second().files.write("/tmp/private-mark", "x");
    const sleeping = await second().commands.run("sleep 4321", { background: true });
    expect(await first().files.exists("/tmp/private-mark")).toBe(false);
    expect((await first().commands.run("sudo pgrep -fc '^sleep 4321$' || true")).stdout).toBe("0\n");
    sleeping.wait().catch(() => undefined);
    await sleeping.kill();
  });
});

describe("the host", () => {
  const sandbox = sharedSandbox();
  let listener: Server | undefined;
  let port = 0;

  beforeAll(async () => {
    listener = createServer((socket) => socket.end("host"));
    await new Promise<void>((resolve) => {
      listener?.listen(0, "0.0.0.0", resolve);
    });
    const address = listener.address();
    port = typeof address === "object" && address !== null ? address.port : 0;
  });
  afterAll(() => listener?.close());

  test("the host's ports are closed on every address that it has, also to root inside", async () => {
    const addresses = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter((one) => one.family === "IPv4" && !one.internal)
      .map((one) => one.address);
    const gateway = await gatewayOf(sandbox());
    const apiPort = Number(new URL(platform.apiUrl).port);
    for (const address of new Set([gateway, ...addresses])) {
      for (const closed of [port, apiPort, 22, 2375]) {
        const result = await sandbox().commands.run(dial(address, closed), { user: "root" });
        expect([address, closed, result.stdout]).toEqual([address, closed, "refused\n"]);
      }
    }
  });

  test.each(["169.254.169.254", "168.63.129.16", "100.64.0.1", "10.0.0.1", "172.17.0.1", "192.168.0.1"])(
    "%s is closed",
    async (address) => {
      expect((await sandbox().commands.run(dial(address, 80))).stdout).toBe("refused\n");
    },
  );

  test("root inside cannot change the network, mount, or load modules", async () => {
    const forbidden = [
      "ip route add default via 127.0.0.1",
      "ip link add x type dummy",
      "mount -t tmpfs none /mnt",
      "mknod /tmp/disk b 8 0",
      "sysctl -w kernel.core_pattern=x",
      "chroot / unshare -Ur true",
      "dmesg",
      "nft list ruleset",
    ];
    for (const command of forbidden) {
      const { stdout } = await sandbox().commands.run(`${command} >/dev/null 2>&1 && echo allowed || echo refused`, {
        user: "root",
      });
      expect([command, stdout]).toEqual([command, "refused\n"]);
    }
  });

  test("dangerous kinds of sockets do not exist inside", async () => {
    const python =
      "import socket\nfor family, kind in ((38, 5), (40, 1), (17, 3), (16, 3)):\n  try:\n    socket.socket(family, kind); print(family, 'open')\n  except OSError: print(family, 'closed')";
    await sandbox().files.write("/tmp/sockets.py", python);
    const { stdout } = await sandbox().commands.run("python3 /tmp/sockets.py", { user: "root" });
    expect(stdout).toContain("38 closed\n40 closed\n17 closed\n");
  });

  test("the user inside cannot read envd's memory, environment or token", async () => {
    const { stdout } = await sandbox().commands.run(
      "for p in /proc/[0-9]*; do cat $p/environ 2>/dev/null | tr '\\0' '\\n'; done; cat /run/e2b/* /run/svc/* 2>/dev/null; true",
    );
    const detail = (await api(platform, "GET", `/sandboxes/${sandbox().sandboxId}`)).json as {
      envdAccessToken: string;
    };
    expect(stdout).not.toContain(detail.envdAccessToken);
    expect(stdout).not.toContain("ENVD_CONTROL");
  });
});

async function addressOf(sandbox: Sandbox): Promise<string> {
  return (await sandbox.commands.run("ip -4 -o addr show dev eth0 | awk '{print $4}' | cut -d/ -f1")).stdout.trim();
}

async function gatewayOf(sandbox: Sandbox): Promise<string> {
  return (await sandbox.commands.run("ip -4 route show default | awk '{print $3}'")).stdout.trim();
}

// Any failure to connect counts as a refusal: a dropped packet gives a time-out, a rejected one an error.
function dial(address: string, port: number, seconds = 1): string {
  return `timeout ${seconds} bash -c 'exec 3<>/dev/tcp/${address}/${port}' 2>/dev/null && echo connected || echo refused`;
}
