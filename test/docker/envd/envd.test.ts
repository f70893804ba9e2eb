/** envd in real containers: in any image, when every resource is short, and at a small size. */

import { execFile } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Signal } from "../../../shared/envd-rpc/gen/process_pb.js";
import { inBackground, toEnd } from "../../integration/envd/process/following.ts";
import { as, type Clients, clientsOf } from "../../integration/envd/running-envd.ts";

const run = promisify(execFile);
const RUNTIME = realpathSync(process.env["SVC_TEST_ENVD_RUNTIME"] ?? "/opt/svc/envd-runtime/current");
const CONTROL = { "svc-node-token": "node-secret" };
const EMPTY_IMAGE = "svc/test-empty:latest";
const CAPABILITIES = [
  "CHOWN",
  "DAC_OVERRIDE",
  "FOWNER",
  "FSETID",
  "SETUID",
  "SETGID",
  "KILL",
  "NET_BIND_SERVICE",
  "AUDIT_WRITE",
];

async function docker(...parameters: string[]): Promise<string> {
  const { stdout } = await run("docker", parameters, { timeout: 180_000 });
  return stdout.trim();
}

interface EnvdContainer extends Clients {
  readonly id: string;
  readonly url: string;
}

async function start(image: string, ...options: string[]): Promise<EnvdContainer> {
  const launch = JSON.parse(readFileSync(join(RUNTIME, "envd/launch.json"), "utf8")) as { args: string[] };
  const limits = [
    "--cap-drop",
    "ALL",
    ...CAPABILITIES.flatMap((name) => ["--cap-add", name]),
    "--label",
    "svc.test=envd",
  ];
  const mount = ["-v", `${RUNTIME}:/svc:ro`, "-e", "SVC_ENVD_CONTROL=node-secret", "--entrypoint", "/svc/tini"];
  const id = await docker("run", "-d", ...limits, ...mount, ...options, image, "--", ...launch.args);
  onTestFinished(async () => void (await docker("rm", "-f", id)));
  const address = await docker("inspect", "-f", "{{.NetworkSettings.IPAddress}}", id);
  const url = `http://${address}:49983`;
  await expect
    .poll(() =>
      fetch(`${url}/health`).then(
        ({ status }) => status,
        () => 0,
      ),
    )
    .toBe(204);
  return { id, url, ...clientsOf(url) };
}

const sh = (sandbox: EnvdContainer, script: string, user = "root", shell = "/bin/sh") =>
  toEnd(sandbox.process.start({ process: { cmd: shell, args: ["-c", script], envs: {} }, stdin: false }, as(user)));
const post = async (sandbox: EnvdContainer, path: string, body: object = {}) =>
  (await fetch(`${sandbox.url}${path}`, { method: "POST", headers: CONTROL, body: JSON.stringify(body) })).status;

/** The process ids on the host of the container's main processes, without the init. */
async function hostPids(sandbox: EnvdContainer): Promise<string[]> {
  const [, ...pids] = (await docker("top", sandbox.id, "-eo", "pid")).split("\n");
  return pids.map((pid) => pid.trim());
}

async function privateDirtyKib(sandbox: EnvdContainer): Promise<number> {
  let total = 0;
  for (const pid of await hostPids(sandbox))
    total += Number(/^Private_Dirty:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1]);
  return total;
}

beforeAll(async () => {
  await run("sh", ["-c", `tar -c -T /dev/null | docker import - ${EMPTY_IMAGE}`]);
});
afterAll(async () => void (await docker("rmi", "-f", EMPTY_IMAGE)));

describe("in the base image", () => {
  test("commands run as the image's user, with its shell, and sudo works", async () => {
    const sandbox = await start("svc/base:latest");
    const seen = await sh(sandbox, "id -un; pwd; sudo -n id -un; cat < /dev/null", "user", "/bin/bash");
    expect(seen.stdout.toString()).toBe("user\n/home/user\nroot\n");
    const login = await toEnd(
      sandbox.process.start({ process: { cmd: "/bin/bash", args: ["-l", "-c", "echo $PATH"], envs: {} } }),
    );
    expect(login.stdout.toString()).toContain("/usr/bin");
  });

  test("process ids are those inside the container, and killed processes and their orphans vanish", async () => {
    const sandbox = await start("svc/base:latest");
    const shell = await inBackground(
      sandbox.process.start(
        { process: { cmd: "/bin/sh", args: ["-c", "echo $$; sleep 500 & sleep 501; true"], envs: {} } },
        as("user"),
      ),
    );
    await expect.poll(shell.text).toBe(`${shell.pid}\n`);
    await sandbox.process.sendSignal({
      process: { selector: { case: "pid", value: shell.pid } },
      signal: Signal.SIGKILL,
    });
    await shell.done;
    await expect.poll(async () => (await sh(sandbox, "pgrep -c sleep")).stdout.toString()).toBe("0\n");
    await expect.poll(async () => (await sh(sandbox, "ps -eo stat= | grep -c ^Z")).stdout.toString()).toBe("0\n");
  });

  test("the user can neither read envd's secrets nor touch it", async () => {
    const sandbox = await start("svc/base:latest");
    const envd = (await sh(sandbox, "pgrep -f envd.js | head -1")).stdout.toString().trim();
    const seen = await sh(
      sandbox,
      `cat /proc/${envd}/environ; cat /proc/${envd}/mem; ls /proc/${envd}/fd; kill -9 ${envd}; kill -STOP ${envd}; env`,
      "user",
    );
    expect(seen.stdout.toString()).not.toContain("node-secret");
    expect(seen.stderr.toString().match(/Permission denied|not permitted/g)?.length).toBeGreaterThanOrEqual(4);
    expect((await sh(sandbox, "tr '\\0' '\\n' < /proc/self/environ")).stdout.toString()).not.toContain("node-secret");
    expect((await fetch(`${sandbox.url}/health`)).status).toBe(204);
  });

  test("a terminal has job control and its own name", async () => {
    const sandbox = await start("svc/base:latest");
    const shell = sandbox.process.start(
      {
        process: { cmd: "/bin/bash", args: ["-i", "-c", "tty; stty size; set -m; sleep 0.1 & fg"], envs: {} },
        pty: { size: { cols: 100, rows: 30 } },
      },
      as("user"),
    );
    const text = (await toEnd(shell)).terminal.toString();
    expect(text).toMatch(/\/dev\/pts\/\d/);
    expect(text).toContain("30 100");
    expect(text).not.toContain("no job control");
  });
});

describe("in an image without bash and glibc", () => {
  test("the image's own shell works, and a missing shell has a clear error", async () => {
    const sandbox = await start("svc/test-busybox:latest");
    expect((await sh(sandbox, "echo $0 $((6*7))")).stdout.toString()).toBe("/bin/sh 42\n");
    await expect(sh(sandbox, "true", "root", "/bin/bash")).rejects.toMatchObject({
      code: Code.NotFound,
      rawMessage: "executable '/bin/bash' not found",
    });
    const entry = (await sandbox.filesystem.makeDir({ path: "/a/b" }, as("root"))).entry;
    expect(entry).toMatchObject({ path: "/a/b", permissions: "drwxr-xr-x" });
    const terminal = await toEnd(
      sandbox.process.start(
        { process: { cmd: "/bin/sh", args: ["-c", "tty && echo yes"], envs: {} }, pty: {} },
        as("root"),
      ),
    );
    expect(terminal.terminal.toString()).toContain("yes");
  });
});

describe("envd in an empty image", () => {
  test("envd runs, initialises, keeps files; root is there without any user database", async () => {
    const sandbox = await start(EMPTY_IMAGE);
    expect(await post(sandbox, "/warm")).toBe(204);
    expect(
      await post(sandbox, "/init", {
        caBundle: "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----",
        sandboxId: "i1",
      }),
    ).toBe(204);
    const read = await fetch(`${sandbox.url}/files?path=/etc/ssl/certs/ca-certificates.crt`);
    expect(await read.text()).toContain("ours");
    const { stdout } = await toEnd(
      sandbox.process.start({ process: { cmd: "/svc/envd/svc-exec", args: [], envs: {} }, stdin: false }),
    );
    expect(stdout.length).toBe(0);
    expect((await sandbox.filesystem.stat({ path: "/etc" })).entry).toMatchObject({ owner: "0", group: "0" });
    await expect(
      toEnd(sandbox.process.start({ process: { cmd: "ls", args: [], envs: {} } }, as("user"))),
    ).rejects.toMatchObject({ code: Code.Unauthenticated });
  });
});

describe("envd without processes, memory or disk space to spare", () => {
  test("without room for another process a start is refused as exhausted, and works again later", async () => {
    const sandbox = await start("svc/base:latest", "--pids-limit", "40");
    await expect.poll(async () => (await sh(sandbox, "true")).end?.exitCode).toBe(0);
    const held: { pid: number; done: Promise<unknown> }[] = [];
    const fill = async () => {
      for (;;)
        held.push(
          await inBackground(
            sandbox.process.start({ process: { cmd: "/bin/sleep", args: ["300"], envs: {} } }, as("user")),
          ),
        );
    };
    await expect(fill()).rejects.toMatchObject({ code: Code.ResourceExhausted });
    expect(held.length).toBeGreaterThan(10);
    expect((await fetch(`${sandbox.url}/health`)).status).toBe(204);
    for (const { pid } of held)
      await sandbox.process.sendSignal({ process: { selector: { case: "pid", value: pid } }, signal: Signal.SIGKILL });
    await Promise.all(held.map(({ done }) => done));
    expect((await sh(sandbox, "echo again")).stdout.toString()).toBe("again\n");
  });

  test("a command that takes all memory is killed, envd is not", async () => {
    const sandbox = await start("svc/base:latest", "--memory", "96m", "--memory-swap", "96m");
    const seen = await sh(sandbox, "exec python3 -c 'x = bytearray(500_000_000); print(len(x))'", "user");
    expect(seen.end?.status).toBe("signal: killed");
    expect((await sh(sandbox, "echo alive")).stdout.toString()).toBe("alive\n");
  });

  test("a write to a full disk fails with an error that names the full disk", async () => {
    const sandbox = await start("svc/base:latest", "--tmpfs", "/small:size=1m");
    const body = Buffer.alloc(3_000_000, 1);
    const headers = { "content-type": "application/octet-stream" };
    const response = await fetch(`${sandbox.url}/files?path=/small/f`, { method: "POST", headers, body });
    expect([response.status, await response.json()]).toEqual([
      507,
      { code: 507, message: "not enough disk space available" },
    ]);
  });
});

describe("an idle envd", () => {
  test("comes back to 14.5 MB after work, and uses no CPU", async () => {
    const sandbox = await start("svc/base:latest");
    expect(await post(sandbox, "/warm")).toBe(204);
    for (let i = 0; i < 20; i += 1) await sh(sandbox, `echo ${i}`, "user");
    await sandbox.filesystem.listDir({ path: "/etc", depth: 2 });
    await expect.poll(() => privateDirtyKib(sandbox), { timeout: 90_000, interval: 1_000 }).toBeLessThan(14_500);
    const cpu = async () => {
      let ticks = 0;
      for (const pid of await hostPids(sandbox)) {
        const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, "utf8").split(" ").slice(13, 15).map(Number);
        ticks += user + system;
      }
      return ticks;
    };
    const used = async () => {
      const before = await cpu();
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      return (await cpu()) - before;
    };
    // One tick is 10 ms. The garbage collector may run once more, on a busy machine late.
    await expect.poll(used, { timeout: 60_000 }).toBeLessThanOrEqual(2);
  });

  test("is small in a frozen container of the pool, too", async () => {
    const sandbox = await start("svc/base:latest");
    expect(await post(sandbox, "/warm")).toBe(204);
    await docker("pause", sandbox.id);
    expect(await privateDirtyKib(sandbox)).toBeLessThan(16_500);
    await docker("unpause", sandbox.id);
    expect((await sh(sandbox, "echo thawed")).stdout.toString()).toBe("thawed\n");
  });
});

test("envd ends at once when its container is stopped", async () => {
  const sandbox = await start("svc/base:latest");
  await docker("stop", "-t", "60", sandbox.id);
  // Docker kills a process that is still there after that time, and its exit code says so.
  expect(await docker("inspect", "-f", "{{.State.ExitCode}}", sandbox.id)).not.toBe("137");
});
