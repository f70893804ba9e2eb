/** The templates of coding agents: each program starts as its maker ships it, and says that nobody is logged in. */

import { Sandbox } from "e2b";
import { expect, test } from "vitest";
import { openPlatform } from "../support/platform/platform.ts";
import { killedAfterwards } from "../support/sandbox/sdk.ts";

openPlatform();
const LIVES = { timeoutMs: 900_000 };

interface Agent {
  readonly version: string;
  /** What somebody without an account does first, and what the program says to it. */
  readonly first: string;
  readonly says: RegExp;
  /** How many letters its screen has at least, when it waits for a person. */
  readonly draws: number;
}

const AGENTS: Readonly<Record<string, Agent>> = {
  claude: {
    version: "claude --version",
    first: "claude -p hello",
    says: /not logged in|please run \/login/i,
    draws: 500,
  },
  codex: { version: "codex --version", first: "codex login status", says: /not logged in/i, draws: 500 },
  opencode: { version: "opencode --version", first: "opencode auth list", says: /0 credentials/i, draws: 500 },
  // Without a log-in it draws nothing of its own, and asks for the code of one, for which it waits.
  amp: { version: "amp --version", first: "timeout 60 amp -x hello", says: /no api key found/i, draws: 100 },
};

test.each(Object.entries(AGENTS))(
  "the program of the template %s starts without a key, and asks for one",
  async (name, agent) => {
    const sandbox = killedAfterwards(await Sandbox.create(name, LIVES));
    const run = async (command: string) =>
      (await sandbox.commands.run(`{ ${command}; } </dev/null 2>&1 || true`, { timeoutMs: 120_000 })).stdout;
    expect(await run(agent.version)).toMatch(/\d+\.\d+\.\d+/);
    expect(await run(agent.first)).toMatch(agent.says);
    expect(await run("env | grep -iE '(api_?key|token|secret)=' | grep -v '^E2B_'")).toBe("");
  },
);

test.each(Object.entries(AGENTS))(
  "a session of the template %s is paused while its program waits for a person, and goes on",
  async (name, { draws }) => {
    const sandbox = killedAfterwards(await Sandbox.create(name, LIVES));
    const size = { cols: 100, rows: 30 };
    const screen = { text: "" };
    const terminal = await sandbox.pty.create({
      ...size,
      timeoutMs: 0,
      onData: (data) => {
        screen.text += Buffer.from(data).toString("utf8");
      },
    });
    await sandbox.pty.sendInput(terminal.pid, Buffer.from(`${name}\n`));
    // The oldest: what it starts for a moment may have its name.
    const pid = async () => (await sandbox.commands.run(`pgrep -o -x ${name} || true`)).stdout.trim();
    await expect.poll(pid, { timeout: 120_000, interval: 500 }).not.toBe("");
    await expect.poll(() => screen.text.length, { timeout: 120_000 }).toBeGreaterThan(draws);
    const before = await pid();
    await terminal.disconnect();
    await sandbox.pause();
    await Sandbox.connect(sandbox.sandboxId, LIVES);
    expect(await pid()).toBe(before);
  },
);
