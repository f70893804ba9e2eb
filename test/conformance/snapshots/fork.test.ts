/** Forks: copies of a running sandbox with everything that runs in it; each copy is a sandbox of its own. */

import { NotFoundError, Sandbox } from "e2b";
import { describe, expect, onTestFinished, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { identityOf, startCounter, startFileServer, visit } from "../../support/sandbox/pausing.ts";
import { ownSandbox, refusal, text } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();

async function forks(source: Sandbox, count: number): Promise<Sandbox[]> {
  const results = await source.fork({ count, timeoutMs: 300_000 });
  const made = results.filter((each): each is Sandbox => each instanceof Sandbox);
  onTestFinished(async () => {
    await Promise.all(made.map((each) => each.kill()));
  });
  expect(results.filter((each) => each instanceof Error)).toEqual([]);
  return made;
}

test("one fork goes on from the same point, and the two go their own ways", async () => {
  const source = await ownSandbox({ envs: { GREETING: "hello" }, metadata: { purpose: "fork" }, timeoutMs: 600_000 });
  const counter = await startCounter(source);
  await source.files.write("shared.txt", "before");
  const before = await source.getInfo();
  const count = await counter.read();
  const [fork] = await forks(source, 1);
  if (fork === undefined) throw new Error("no fork");
  expect(fork.sandboxId).not.toBe(source.sandboxId);
  expect(await fork.files.read("shared.txt")).toBe("before");
  expect((await fork.commands.run('echo "$GREETING $E2B_SANDBOX_ID"')).stdout).toBe(`hello ${fork.sandboxId}\n`);
  const forked = await counter.read(fork);
  expect(forked).toBeGreaterThanOrEqual(count);
  await expect.poll(() => counter.read(fork)).toBeGreaterThan(forked);
  await fork.files.write("shared.txt", "fork");
  expect(await source.files.read("shared.txt")).toBe("before");
  expect((await fork.getInfo()).metadata).toEqual({ purpose: "fork" });
  expect((await fork.getInfo()).endAt.getTime() - Date.now()).toBeLessThanOrEqual(301_000);
  expect(await source.getInfo()).toEqual(before);
});

test("five forks at once have each their own id, token and random bytes", async () => {
  const source = await ownSandbox();
  await startFileServer(source, 8000, "served");
  const made = await forks(source, 5);
  expect(made).toHaveLength(5);
  expect(new Set([source, ...made].map(({ sandboxId }) => sandboxId)).size).toBe(6);
  const answers = await Promise.all(made.map((each) => visit(platform, each, { port: 8000 })));
  expect(answers).toEqual(made.map(() => ({ status: 200, text: "served" })));
  const random = "head -c 32 /dev/urandom | base64";
  const outputs = await Promise.all([source, ...made].map((each) => each.commands.run(random)));
  expect(new Set(outputs.map(({ stdout }) => stdout)).size).toBe(6);
  // A token opens only its own sandbox.
  const [one, two] = made;
  const detail = await api(platform, "GET", `/sandboxes/${one?.sandboxId}`);
  const headers = { "x-access-token": (detail.json as { envdAccessToken: string }).envdAccessToken };
  const foreign = await visit(platform, two?.sandboxId ?? "", {
    port: 49_983,
    path: "/files?path=/etc/hosts",
    headers,
  });
  expect(foreign.status).toBe(401);
});

test("the source keeps its processes, its end and its open connections", async () => {
  const source = await ownSandbox({ timeoutMs: 600_000 });
  const counter = await startCounter(source);
  const process = await identityOf(source, counter.pid);
  let heard = "";
  const onData = (data: Uint8Array) => {
    heard += text(data);
  };
  const terminal = await source.pty.create({ cols: 80, rows: 24, onData, timeoutMs: 0 });
  const stream = { ended: false };
  const noteEnd = () => {
    stream.ended = true;
  };
  void terminal.wait().then(noteEnd, noteEnd);
  const before = await source.getInfo();
  await forks(source, 1);
  expect(await source.getInfo()).toEqual(before);
  expect(await identityOf(source, counter.pid)).toBe(process);
  expect(stream.ended).toBe(false);
  await source.pty.sendInput(terminal.pid, new TextEncoder().encode("echo same-$((40+2))\n"));
  await expect.poll(() => heard).toContain("same-42\r\n");
  await terminal.kill();
});

test("a fork can be forked, and a fork can be paused and resumed", async () => {
  const source = await ownSandbox();
  const counter = await startCounter(source);
  const [first] = await forks(source, 1);
  if (first === undefined) throw new Error("no fork");
  const [second] = await forks(first, 1);
  if (second === undefined) throw new Error("no fork of the fork");
  expect(await second.pause()).toBe(true);
  await source.kill();
  await second.connect();
  const count = await counter.read(second);
  await expect.poll(() => counter.read(second)).toBeGreaterThan(count);
});

describe("refused forks", () => {
  const fork = (id: string, body: object) => api(platform, "POST", `/sandboxes/${id}/fork`, { body });

  test.each([{ count: 0 }, { count: 101 }, { count: "2" }, { timeout: 0 }, { timeout: -5 }])(
    "a fork with %j is refused",
    async (body) => {
      const source = await ownSandbox();
      const reply = await fork(source.sandboxId, body);
      expect([reply.status, (reply.json as { code: number }).code]).toEqual([400, 400]);
    },
  );

  test("a paused sandbox, and one that does not exist, cannot be forked", async () => {
    const source = await ownSandbox();
    await source.pause();
    expect((await fork(source.sandboxId, {})).json).toMatchObject({
      code: 409,
      message: expect.stringContaining("is paused and cannot be forked; resume it first") as string,
    });
    expect(await refusal(Sandbox.fork(`i${"0".repeat(19)}`))).toBeInstanceOf(NotFoundError);
  });
});
