/** Terminals: size, resizing, input, signals from the keyboard, reconnecting and killing. */

import { type CommandHandle, NotFoundError, type Sandbox } from "e2b";
import { expect, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { refusal, sharedSandbox, text } from "../../support/sandbox/sdk.ts";

openPlatform();
const sandbox = sharedSandbox({ envs: { GLOBAL: "shared" } });

test("a terminal has the size it was made with, from the first command on", async () => {
  const terminal = await open(sandbox(), { cols: 93, rows: 31 });
  await terminal.type("stty size\n");
  await expect.poll(terminal.heard).toContain("31 93\r\n");
});

test("a resize reaches the terminal, and running programs get SIGWINCH", async () => {
  const terminal = await open(sandbox(), { cols: 80, rows: 24 });
  await terminal.type("trap 'echo w:$(stty size)' WINCH; echo re''ady\n");
  await expect.poll(terminal.heard).toContain("ready\r\n");
  await sandbox().pty.resize(terminal.handle.pid, { cols: 120, rows: 40 });
  await terminal.type("\n");
  await expect.poll(terminal.heard).toContain("w:40 120");
  await terminal.type("stty size\n");
  await expect.poll(terminal.heard).toMatch(/(?<!w:)40 120\r\n/);
});

test("a terminal is a real one, of the user's login shell", async () => {
  const terminal = await open(sandbox());
  await terminal.type("tty; whoami; pwd; echo $TERM $LANG [$GLOBAL]; tput colors\n");
  await expect
    .poll(terminal.heard)
    .toMatch(/\/dev\/pts\/\d+\r\nuser\r\n\/home\/user\r\nxterm-256color C\.UTF-8 \[shared\]\r\n256\r\n/);
});

test("user, directory and environment of a terminal may be chosen", async () => {
  const terminal = await open(sandbox(), { user: "root", cwd: "/tmp", envs: { MINE: "yes" } });
  await terminal.type("whoami; pwd; echo [$MINE]\n");
  await expect.poll(terminal.heard).toMatch(/root\r\n\/tmp\r\n\[yes\]\r\n/);
});

test("a terminal echoes keys, and obeys control-C and control-D", async () => {
  const terminal = await open(sandbox());
  await terminal.type("sleep 606\n");
  await expect.poll(async () => (await sandbox().commands.run("pgrep -fc '^sleep 606$' || true")).stdout).toBe("1\n");
  await terminal.type("\u0003");
  await expect.poll(async () => (await sandbox().commands.run("pgrep -fc '^sleep 606$' || true")).stdout).toBe("0\n");
  // Before its prompt the shell would not take the next key for the end of its input.
  await expect.poll(terminal.heard).toMatch(/\^C[^]*\$ $/);
  await terminal.type("\u0004");
  expect((await terminal.ended).exitCode).toBe(130);
});

test("an exit of the shell gives its code, and nothing of the output before it is lost", async () => {
  const terminal = await open(sandbox());
  await terminal.type("seq 1 5000; exit 5\n");
  expect((await terminal.ended).exitCode).toBe(5);
  expect(terminal.heard()).toContain("\r\n4999\r\n5000\r\n");
});

test("another client can continue in a terminal that its client has left", async () => {
  const terminal = await open(sandbox());
  await terminal.type("STATE=kept; echo re''ady\n");
  await expect.poll(terminal.heard).toContain("ready\r\n");
  await terminal.handle.disconnect();
  let heard = "";
  const again = await sandbox().pty.connect(terminal.handle.pid, {
    onData: (data) => {
      heard += text(data);
    },
  });
  again.wait().catch(() => undefined);
  await sandbox().pty.sendInput(again.pid, Buffer.from("echo [$STATE]\n"));
  await expect.poll(() => heard).toContain("[kept]\r\n");
  expect(heard).not.toContain("ready");
});

test("kill ends a terminal and returns true once, then false", async () => {
  const terminal = await open(sandbox());
  expect(await sandbox().pty.kill(terminal.handle.pid)).toBe(true);
  expect((await terminal.ended).exitCode).toBe(-1);
  expect(await sandbox().pty.kill(terminal.handle.pid)).toBe(false);
});

test("list shows a terminal; input to one that is gone is not found", async () => {
  const terminal = await open(sandbox());
  expect((await sandbox().commands.list()).map((process) => process.pid)).toContain(terminal.handle.pid);
  await sandbox().pty.kill(terminal.handle.pid);
  await terminal.ended;
  expect(await refusal(sandbox().pty.sendInput(terminal.handle.pid, Buffer.from("x")))).toBeInstanceOf(NotFoundError);
});

test("two megabytes through a terminal arrive whole", async () => {
  const terminal = await open(sandbox());
  await terminal.type("stty -onlcr; head -c 2000000 /dev/zero | tr '\\0' x; echo END''MARK; exit\n");
  await terminal.ended;
  expect(terminal.heard().match(/x+ENDMARK/)?.[0]).toHaveLength(2_000_000 + "ENDMARK".length);
});

interface Shape {
  readonly cols?: number;
  readonly rows?: number;
  readonly user?: string;
  readonly cwd?: string;
  readonly envs?: Record<string, string>;
}

interface Terminal {
  readonly handle: CommandHandle;
  readonly ended: Promise<{ exitCode: number }>;
  type(keys: string): Promise<void>;
  readonly heard: () => string;
}

async function open(from: Sandbox, shape: Shape = {}): Promise<Terminal> {
  const chunks: Buffer[] = [];
  const handle = await from.pty.create({
    cols: 80,
    rows: 24,
    timeoutMs: 300_000,
    onData: (data) => void chunks.push(Buffer.from(data)),
    ...shape,
  });
  // The SDK throws an error when a shell ends with a code; this test needs only the code.
  const ended = handle.wait().catch((error: unknown) => {
    if (error instanceof Error && "exitCode" in error) return { exitCode: Number(error.exitCode) };
    throw error;
  });
  ended.catch(() => undefined);
  return {
    handle,
    ended,
    type: (keys) => from.pty.sendInput(handle.pid, Buffer.from(keys)),
    heard: () => Buffer.concat(chunks).toString("utf8"),
  };
}
