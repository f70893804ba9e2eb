/** Programs inside see the sizes of their sandbox, not the machine's, however the sandbox was started. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { BASE, RESOURCES, type RealAgent, RUN_DIR, realAgent } from "../../support/agent/real-agent.ts";
import { background, command } from "../../support/sandbox/envd-commands.ts";

/** Most seconds between the start of a process and its first line, with two that rounding takes. */
const STARTING_S = 20;
const SLOW = { timeout: 90_000, interval: 100 };
const ROOT = { user: "root" };
const MEGABYTES = RESOURCES.memoryMB;
const PLACE = `${RUN_DIR}/sizes`;
const run = promisify(execFile);

/** Asks each program that sizes itself, as far as the image has it. */
const ASK = `
import ctypes, json, os, re, shutil, subprocess, time
begun = time.time()
def out(*words): return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
def text(path): return open(path).read()
def has(name): return shutil.which(name) is not None
asking = "const o=require('os');console.log(JSON.stringify([o.cpus().length,o.availableParallelism(),o.totalmem()>>20,o.uptime()]))"
loader = ["/svc/lib/ld-linux-x86-64.so.2", "--library-path", "/svc/lib", "/svc/node"]
*node, node_uptime = json.loads(out(*loader, "-e", asking))
# Go's runtime counts the bits of this mask.
mask = ctypes.create_string_buffer(1024)
length = ctypes.CDLL(None).syscall(204, 0, 1024, mask)
limits = ["/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"]
free = dict((line.split()[0], line.split()[1:]) for line in out("free", "-m").splitlines()[1:])
found = {
    "cpus": {
        "nproc": int(out("nproc")), "python": os.cpu_count(), "affinity": len(os.sched_getaffinity(0)),
        "go": sum(bin(byte).count("1") for byte in mask.raw[:length]), "node": node[0], "node's default": node[1],
        "cpuinfo": len(re.findall("^processor", text("/proc/cpuinfo"), re.M)),
        "stat": len(re.findall("^cpu[0-9]", text("/proc/stat"), re.M)),
        "online": len(re.findall("[0-9]+", text("/sys/devices/system/cpu/online"))),
    },
    "megabytes": {
        "free": int(free["Mem:"][0]), "node": node[2],
        "meminfo": int(re.search("MemTotal: +([0-9]+)", text("/proc/meminfo"))[1]) >> 10,
        "top": int(float(re.search("MiB Mem : +([0-9.]+)", out("top", "-b", "-n1"))[1])),
        "cgroup": [int(text(path)) >> 20 for path in limits if os.path.exists(path)][0],
    },
    "available": int(free["Mem:"][5]),
    "started": int(re.search("btime ([0-9]+)", text("/proc/stat"))[1])
        + int(text("/proc/self/stat").rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK") - begun,
    "swap": int(free["Swap:"][0]), "swaps": len(text("/proc/swaps").splitlines()) - 1,
    "seconds": [float(text("/proc/uptime").split()[0]), node_uptime],
    "load": float(text("/proc/loadavg").split()[0]),
    "mounted": sum(" fuse.svc-sizes " in line for line in text("/proc/mounts").splitlines()),
}
if has("make"):
    open("/tmp/Makefile", "w").write("all:\\n\\t@echo $(MAKEFLAGS)\\n")
    found["cpus"]["make"] = int(re.search("-j([0-9]+)", out("sh", "-c", "make -C /tmp -j$(nproc)"))[1])
if has("node"):
    cpus, parallel, memory, _ = json.loads(out("node", "-e", asking))
    found["cpus"]["image's node"], found["megabytes"]["image's node"] = max(cpus, parallel), memory
if has("java"):
    system = out("java", "-XshowSettings:system", "-version")
    found["cpus"]["java"] = int(re.search("Effective CPU Count: ([0-9]+)", system)[1])
    found["megabytes"]["java"] = int(float(re.search("Memory Limit: ([0-9.]+)M", system)[1]))
print(json.dumps(found))
`;

interface Found {
  readonly cpus: Readonly<Record<string, number>>;
  readonly megabytes: Readonly<Record<string, number>>;
  readonly available: number;
  /** When the asking process started, by btime and its own entry, in seconds from its first line. */
  readonly started: number;
  readonly swap: number;
  readonly swaps: number;
  readonly seconds: readonly number[];
  readonly load: number;
  readonly mounted: number;
}

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent();
});
afterAll(() => agent.close());

async function ask({ address }: Started): Promise<Found> {
  const script = Buffer.from(ASK).toString("base64");
  const { output } = await command(address, `echo ${script} | base64 -d | python3 -`, ROOT);
  expect(output).toMatch(/^\{/);
  return JSON.parse(output) as Found;
}

/** Everything inside agrees on the sandbox's sizes. @param seconds since its container was started or restored, at most */
function expectOwn(found: Found, seconds: number): void {
  expect([...new Set(Object.values(found.cpus))], JSON.stringify(found.cpus)).toEqual([RESOURCES.cpuCount]);
  expect([...new Set(Object.values(found.megabytes))], JSON.stringify(found.megabytes)).toEqual([MEGABYTES]);
  expect(found).toMatchObject({ swap: 0, swaps: 0, mounted: 7 });
  expect(found.available).toBeGreaterThan(MEGABYTES / 2);
  expect(found.started).toBeGreaterThan(-STARTING_S);
  expect(found.started).toBeLessThanOrEqual(0);
  expect(Math.max(...found.seconds)).toBeLessThan(seconds);
  expect(found.load).toBeLessThanOrEqual(RESOURCES.cpuCount);
}

const served = async () => (await readFile(`${PLACE}/alive`, "utf8")).trim();

/** The processes that serve this agent's mount. */
async function servers(): Promise<string[]> {
  const { stdout } = await run("pgrep", ["--full", `svc-sizes serve ${PLACE} `]);
  return stdout.trim().split("\n");
}

test("the machine has more than a sandbox, so that these tests can fail", () => {
  expect(cpus().length).toBeGreaterThan(RESOURCES.cpuCount);
  expect(totalmem() / 2 ** 20).toBeGreaterThan(MEGABYTES);
});

test("a sandbox that was started cold, its copy, and itself after a pause see their own sizes, while top goes on", async () => {
  const begun = Date.now();
  const age = () => (Date.now() - begun) / 1_000 + 1;
  const cold = await agent.start();
  expect(cold.warm).toBe(false);
  // top keeps /proc/stat and /proc/meminfo open, and the shell /proc/uptime.
  await background(cold.address, "exec 3</proc/uptime; exec top -b -d 0.2 >/tmp/top", ROOT);
  expectOwn(await ask(cold), age());
  for (const attempt of ["umount /proc/meminfo", "echo 1 >/proc/meminfo", "mount --bind /proc/version /proc/stat"])
    expect((await command(cold.address, attempt, ROOT)).code, attempt).not.toBe(0);

  const checkpoint = randomUUID();
  await agent.call.checkpointExecution({
    params: { executionId: cold.executionId },
    body: { snapshotId: checkpoint, memory: true },
  });
  const copied = Date.now();
  const copy = await agent.start({ origin: { is: "snapshot", snapshotId: checkpoint, memory: true } });
  expect(copy.restored).toBe("memory");
  expectOwn(await ask(copy), (Date.now() - copied) / 1_000 + 1);
  await agent.stop(copy.executionId);

  const snapshotId = randomUUID();
  await agent.call.pauseExecution({ params: { executionId: cold.executionId }, body: { snapshotId, memory: true } });
  await agent.drop();
  // From here on a start time that counts the pause is out of bounds.
  await expect.poll(() => Date.now() - copied, SLOW).toBeGreaterThan(STARTING_S * 1_000);
  const resumed = Date.now();
  const again = await agent.start({
    sandboxId: cold.sandboxId,
    origin: { is: "paused", snapshotId, memory: true },
  });
  expect(again.restored).toBe("memory");
  expectOwn(await ask(again), (Date.now() - resumed) / 1_000 + 1);
  await command(again.address, ": >/tmp/top", ROOT);
  const memory = async () => (await command(again.address, "grep -a 'MiB Mem' /tmp/top | tail -n 1", ROOT)).output;
  await expect.poll(memory, SLOW).toContain(` ${MEGABYTES}.0 total`);
  await agent.stop(again.executionId);
});

test("sandboxes from the pool see their own sizes, and both servers of the files may be killed", async () => {
  agent.setPools([{ build: BASE, resources: RESOURCES, size: 2 }]);
  await expect.poll(() => agent.heartbeats.at(-1)?.load.pools[0]?.ready, SLOW).toBe(2);
  const warm = await Promise.all([agent.start(), agent.start()]);
  agent.setPools([]);
  expect(warm.map((one) => one.warm)).toEqual([true, true]);
  for (const one of warm) expectOwn(await ask(one), 300);
  const sets = await Promise.all(
    warm.map(async ({ address }) => (await command(address, "cat /sys/devices/system/cpu/online", ROOT)).output),
  );
  expect(new Set(sets).size).toBe(2);

  // One process at a time: the other one replaces it, and nobody inside notices.
  const [version = ""] = (await served()).split(" ");
  for (let round = 0; round < 4; round++) {
    const [oldest = ""] = await servers();
    process.kill(Number(oldest), "SIGKILL");
    await expect.poll(served, SLOW).toMatch(version);
    await expect.poll(async () => (await servers()).length, SLOW).toBe(2);
  }
  expectOwn(await ask(warm[0]), 300);

  // Both at once: the mounts are gone, and the agent gives the sandboxes that run new ones.
  const both = (await servers()).map(Number);
  for (const pid of both) process.kill(pid, "SIGSTOP");
  for (const pid of both) process.kill(pid, "SIGKILL");
  // On a busy machine the agent may have made new ones before this look.
  await served().catch((error: unknown) => expect(String(error)).toMatch(/ENOTCONN|ECONNABORTED/));
  const during = await agent.start();
  await expect.poll(async () => (await ask(warm[1]).catch(() => undefined))?.mounted, SLOW).toBe(7);
  expectOwn(await ask(warm[1]), 300);
  await Promise.all([...warm, during].map(({ executionId }) => agent.stop(executionId)));
});
