/** Limits that the kernel counts for the whole machine or for a user id: a sandbox that takes all it can, and its neighbour. */

import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { background, command } from "../../support/sandbox/envd-commands.ts";

const SLOW = { timeout: 120_000, interval: 200 };

let agent: RealAgent;
let neighbour: Started;
let program: string;
beforeAll(async () => {
  agent = await realAgent();
  neighbour = await agent.start();
  program = (await readFile(new URL("../../support/sandbox/use-up.py", import.meta.url))).toString("base64");
});
afterAll(() => agent.close());

// A file of each run's own: the kernel of an ordinary host (fs.protected_regular) lets no user write to another's file in /tmp.
const useUp = (what: string) => `f=$(mktemp); echo ${program} | base64 -d > $f; exec python3 $f ${what}`;

/** The limit is not below what the memory of a large sandbox can hold, so its memory is what bounds a sandbox. */
test.each([
  ["fs/inotify/max_user_instances", 2 ** 30],
  ["fs/inotify/max_user_watches", 2 ** 30],
  ["fs/epoll/max_user_watches", 2 ** 30],
  ["fs/pipe-user-pages-soft", 2 ** 30],
  ["fs/aio-max-nr", 2 ** 30],
  ["fs/file-max", 2 ** 40],
  ["net/ipv4/tcp_max_orphans", 2 ** 30],
  ["kernel/pid_max", 1_000 * 4_096],
  ["kernel/pty/max", 1_000 * 512],
])("the machine's %s is beyond what sandboxes can take", async (name, least) => {
  expect(Number(await readFile(`/proc/sys/${name}`, "utf8"))).toBeGreaterThanOrEqual(least);
});

test.each(["user", "root"])(
  "a sandbox that takes all it can as %s leaves its neighbour what it needs",
  async (user) => {
    const attacker = await agent.start();
    onTestFinished(() => agent.stop(attacker.executionId));
    const got = "/tmp/got";
    await background(attacker.address, `${useUp("attack")} > ${got}`, { user });
    await expect
      .poll(async () => (await command(attacker.address, `cat ${got}`, { user })).output, SLOW)
      .toContain("}");
    const taken = JSON.parse((await command(attacker.address, `cat ${got}`, { user })).output) as Record<
      string,
      number
    >;
    // The attack was one: it got more than the kernel gives all programs of the machine or of a user by default.
    expect(taken).toMatchObject({ pipes: 1_500, watches: 9_000, requests: 4 });
    expect(taken["terminals"]).toBeGreaterThan(400);
    expect(taken["terminals"]).toBeLessThanOrEqual(512);
    // A quarter of the sandbox's memory, and what the kernel always grants each connection.
    expect(taken["buffered bytes"]).toBeLessThan(80 * 1024 * 1024);

    const { output } = await command(neighbour.address, useUp("need"), { user });
    const { limits, ...found } = JSON.parse(output) as { limits: { signals: number; queues: number } };
    // Docker without CAP_SYS_RESOURCE cannot grant a sandbox more than it has itself; then these two are shared.
    const unlimited = { ...(limits.signals < 0 ? SIGNALS : {}), ...(limits.queues < 0 ? { queue: "works" } : {}) };
    expect(found).toMatchObject({
      terminal: "works",
      pipe: 65_536,
      watch: "works",
      requests: "works",
      "ordinary signals and timers": 124,
      ...unlimited,
    });
  },
  300_000,
);

const SIGNALS = { "queued signal": "works", timer: "works" };
