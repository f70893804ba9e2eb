/** kill -9 of the programs while sandboxes run: the same sandboxes answer afterwards, and nothing is left over. */

import { readFile } from "node:fs/promises";
import { Sandbox, SandboxNotFoundError } from "e2b";
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { containersOf, countHostObjects } from "../support/platform/host-objects.ts";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { openPlatform } from "../support/platform/platform.ts";
import { killHard, type Program, pidOf, run, service, untilReady } from "../support/platform/programs.ts";
import { until } from "../support/runner/until.ts";
import { ownSandbox, refusal, whereabouts } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
/** In memory, because a busy disk may hold a writer up for seconds. */
const TICKS = "/dev/shm/ticks";

/** What follows a kill, on a machine with two cores that can be busy. */
const SLOW = { timeout: 90_000 };

beforeAll(() => untilReady(platform));
beforeEach(() => untilReady(platform));
afterEach(() => untilReady(platform));

describe.each<readonly Program[][]>([[["agent"]], [["orchestrator"]], [["agent", "orchestrator"]]])(
  "%j killed",
  (programs) => {
    test("running sandboxes go on, with files, processes, network and new commands", async () => {
      const sandboxes = await Promise.all(
        [1, 2, 3].map((index) => ownSandbox({ timeoutMs: 600_000, metadata: { index: String(index) } })),
      );
      const lives = await Promise.all(sandboxes.map(start));
      const own = ownTicks();
      await Promise.all(programs.map((program) => killHard(platform, program)));
      await untilReady(platform);
      for (const { sandbox, pid, boot } of lives) {
        const again = await Sandbox.connect(sandbox.sandboxId);
        expect(await again.files.read("mark.txt")).toBe(sandbox.sandboxId);
        expect((await again.commands.list()).map((process) => process.pid)).toContain(pid);
        expect((await again.commands.run("cat /proc/sys/kernel/random/boot_id; hostname")).stdout).toBe(boot);
        const ticks = async () => Number((await again.commands.run(`wc -l < ${TICKS}`)).stdout);
        const then = await ticks();
        await expect.poll(ticks).toBeGreaterThan(then);
        // The ticks have no gap: the sandbox never stood still while the programs were away. A machine that stands still stops
        // the ticks of this process too.
        const { stdout } = await again.commands.run(
          `awk 'NR > 1 && $1 - last > 1.5 { print last, $1 } { last = $1 }' ${TICKS}`,
        );
        const gaps = stdout.split("\n").filter((line) => line !== "");
        expect(gaps.filter((line) => own.within(line.split(" ").map(Number)) > 30)).toEqual([]);
        expect((await again.getInfo()).metadata).toHaveProperty("index");
        expect(await again.isRunning()).toBe(true);
      }
      const fresh = await ownSandbox();
      expect((await fresh.commands.run("echo new")).stdout).toBe("new\n");
      await expectNoProblems(platform);
      expect(await sandboxes[0]?.kill()).toBe(true);
      await expect
        .poll(async () => (await containersOf(platform)).map((one) => one.name))
        .not.toContain(`svc-${sandboxes[0]?.sandboxId}`);
    }, 600_000);

    test("a streaming command never reports a false end: it continues, or ends with an error", async () => {
      const sandbox = await ownSandbox({ timeoutMs: 600_000 });
      const command = sandbox.commands.run("for i in $(seq 1 30); do echo $i; sleep 0.1; done; touch finished");
      const outcome = command.then(
        (result) => result.stdout,
        (error: unknown) => error,
      );
      await Promise.all(programs.map((program) => killHard(platform, program)));
      const end = await outcome;
      if (typeof end === "string") expect(end.trim().split("\n").at(-1)).toBe("30");
      else expect(end).toBeInstanceOf(Error);
      await untilReady(platform);
      // The kill did not interrupt the command, even if the client got an error.
      await expect.poll(() => sandbox.files.exists("finished"), SLOW).toBe(true);
    }, 400_000);

    test("sandboxes that expired in the meantime are gone, and killed ones stay killed", async () => {
      const short = await Sandbox.create({ timeoutMs: 1500 });
      const dead = await Sandbox.create({ timeoutMs: 600_000 });
      await dead.kill();
      await Promise.all(programs.map((program) => killHard(platform, program)));
      await untilReady(platform);
      await expect.poll(() => whereabouts(short), SLOW).toBe("SandboxNotFoundError");
      expect(await refusal(Sandbox.connect(dead.sandboxId))).toBeInstanceOf(SandboxNotFoundError);
      await expectNoProblems(platform);
    }, 400_000);
  },
);

describe("in the middle of a create", () => {
  test.each<[Program, number]>([
    ["agent", 8],
    ["orchestrator", 8],
  ])(
    "%s killed at %i random moments leaves no half sandbox",
    async (program, rounds) => {
      const before = await countHostObjects(platform);
      for (let round = 0; round < rounds; round++) {
        // Looked up before: it takes longer than a start.
        const pid = await pidOf(platform, program);
        const creating = Array.from({ length: 6 }, () =>
          Sandbox.create({ timeoutMs: 300_000, requestTimeoutMs: 40_000 }),
        );
        const settled = Promise.allSettled(creating);
        // The moment is random on purpose: all rounds together cover the whole length of a start.
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 700));
        process.kill(pid, "SIGKILL");
        const made = (await settled).flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
        await untilReady(platform);
        // Every sandbox that a caller got exists.
        for (const sandbox of made) expect((await sandbox.commands.run("echo here")).stdout).toBe("here\n");
      }
      await killAll();
      await expectNoProblems(platform, 120_000);
      await expect
        .poll(
          async () => {
            const now = await countHostObjects(platform);
            return [
              now.sandboxes,
              now.dead,
              now.records,
              now.orphanShims > before.orphanShims,
              now.orphanCgroups > before.orphanCgroups,
              // The pool has grown with the demand, and each of its containers has a namespace.
              now.namespaces - now.pooled > before.namespaces - before.pooled + 2,
            ];
          },
          { timeout: 120_000, interval: 1000 },
        )
        .toEqual([0, 0, 0, false, false, false]);
    },
    1_200_000,
  );
});

describe("an end without a request", () => {
  test("a sandbox whose first process dies is reported gone", async () => {
    const sandbox = await ownSandbox({ timeoutMs: 600_000 });
    await run("docker", ["kill", await nameOf(sandbox)]);
    await expectGone(sandbox);
  }, 400_000);

  test("a sandbox whose container another program removes is reported gone", async () => {
    const sandbox = await ownSandbox({ timeoutMs: 600_000 });
    await run("docker", ["rm", "-f", await nameOf(sandbox)]);
    await expectGone(sandbox);
  }, 400_000);

  test("a sandbox whose shim of containerd is killed is reported gone, and nothing of it is left", async () => {
    const sandbox = await ownSandbox({ timeoutMs: 600_000 });
    const first = (await run("docker", ["inspect", "--format", "{{.State.Pid}}", await nameOf(sandbox)])).trim();
    const [, shim] = /^PPid:\s+(\d+)$/m.exec(await readFile(`/proc/${first}/status`, "utf8")) ?? [];
    expect(await readFile(`/proc/${shim}/cmdline`, "utf8")).toContain("containerd-shim");
    process.kill(Number(shim), "SIGKILL");
    await expectGone(sandbox);
    await expectNoProblems(platform);
  }, 400_000);

  test("the restarted agent reports a sandbox that died while the agent was away", async () => {
    const sandbox = await ownSandbox({ timeoutMs: 600_000 });
    const name = await nameOf(sandbox);
    await service(platform, "stop", "agent");
    await run("docker", ["rm", "-f", name]);
    await service(platform, "start", "agent");
    await untilReady(platform);
    await expectGone(sandbox);
  }, 400_000);
});

test("the agent ends expired sandboxes while the orchestrator is away", async () => {
  const sandbox = await Sandbox.create({ timeoutMs: 5000 });
  await service(platform, "stop", "orchestrator");
  try {
    await expect
      .poll(async () => (await containersOf(platform)).map((one) => one.name), { timeout: 60_000, interval: 500 })
      .not.toContain(`svc-${sandbox.sandboxId}`);
  } finally {
    await service(platform, "start", "orchestrator");
  }
  await untilReady(platform);
  await expectGone(sandbox);
}, 400_000);

/** Waits for the name of the sandbox's container: a claimed container gets it a moment after the start. */
async function nameOf({ sandboxId }: Sandbox): Promise<string> {
  const name = `svc-${sandboxId}`;
  await expect.poll(async () => (await containersOf(platform)).map((one) => one.name)).toContain(name);
  return name;
}

async function expectGone(sandbox: Sandbox): Promise<void> {
  await expect.poll(() => whereabouts(sandbox), SLOW).toBe("SandboxNotFoundError");
  expect(await sandbox.isRunning()).toBe(false);
  await expectNoProblems(platform);
}

/** Notes the time ten times a second until the test is over, and counts the notes between two moments, in seconds. */
function ownTicks(): { within(moments: readonly number[]): number } {
  const noted: number[] = [];
  const timer = setInterval(() => noted.push(Date.now() / 1000), 100);
  onTestFinished(() => clearInterval(timer));
  return { within: ([from = 0, to = 0]) => noted.filter((at) => at > from && at < to).length };
}

async function start(sandbox: Sandbox) {
  await sandbox.files.write("mark.txt", sandbox.sandboxId);
  const ticking = `while :; do date +%s.%N >> ${TICKS}; sleep 0.1; done`;
  const handle = await sandbox.commands.run(ticking, { background: true, timeoutMs: 0 });
  handle.wait().catch(() => undefined);
  const boot = (await sandbox.commands.run("cat /proc/sys/kernel/random/boot_id; hostname")).stdout;
  return { sandbox, pid: handle.pid, boot };
}

/** Kills what is listed, again while there is something: a create that its client gave up may end only now. */
async function killAll(): Promise<void> {
  await until(
    async () => {
      const pages = Sandbox.list();
      let found = 0;
      while (pages.hasNext) {
        const infos = await pages.nextItems();
        found += infos.length;
        await Promise.all(infos.map((info) => Sandbox.kill(info.sandboxId)));
      }
      return found === 0;
    },
    { what: "the end of all sandboxes", timeoutMs: 120_000, everyMs: 1_000 },
  );
}
