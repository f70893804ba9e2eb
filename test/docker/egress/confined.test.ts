/** The egress process runs as a user of its own without rights, so an attacker who takes the process over has none. */

import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { looseEnds } from "../../../agent/egress/launch/confinement.ts";
import { egressCommand } from "../../../agent/egress-supervisor/program.ts";
import { runCommand } from "../../../agent/host/command.ts";
import { type RealAgent, realAgent } from "../../support/agent/real-agent.ts";

const run = promisify(execFile);
const FORBIDDEN = new URL("../../support/egress/forbidden.c", import.meta.url).pathname;
const LIMIT_MS = 180_000;

const statusOf = (pid: number | string) => readFileSync(`/proc/${pid}/status`, "utf8");
/** The command line of a process; empty when the process has ended. */
const commandOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
};
const field = (status: string, name: string) =>
  new RegExp(`^${name}:\\s*(.*)$`, "m").exec(status)?.[1]?.trim().split(/\s+/);

describe("the egress process of a running agent", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent();
  }, LIMIT_MS);
  afterAll(() => agent.close());

  /** Finds the egress process once it serves: until then its first program may still be root. */
  const egress = async (): Promise<number> => {
    let pid: string | undefined;
    const found = () => {
      const children = readFileSync(`/proc/${agent.pid}/task/${agent.pid}/children`, "utf8").trim().split(" ");
      pid = children.find((child) => commandOf(child).startsWith("svc-egress\0"));
      return pid;
    };
    await expect.poll(found, { timeout: LIMIT_MS }).toBeDefined();
    return Number(pid);
  };

  test("has in every thread a user of its own and no capability, and runs under no_new_privs and a seccomp filter", async () => {
    const pid = await egress();
    const threads = readdirSync(`/proc/${pid}/task`).map((thread) => statusOf(`${pid}/task/${thread}`));
    expect(threads.length).toBeGreaterThan(1);
    for (const status of threads) {
      expect(looseEnds(status)).toEqual([]);
      for (const name of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
        expect([name, field(status, name)]).toEqual([name, ["0000000000000000"]]);
      }
      expect([field(status, "NoNewPrivs"), field(status, "Seccomp")]).toEqual([["1"], ["2"]]);
    }
    const [user = "0"] = field(statusOf(pid), "Uid") ?? [];
    expect(Number(user)).toBeGreaterThan(65_535);
    await expect(run("getent", ["passwd", user])).rejects.toMatchObject({ code: 2 });
    expect(looseEnds(statusOf(agent.pid))).toContain("it runs as root");
  });

  test("cannot read or write the agent's files, and cannot signal the agent", async () => {
    const pid = await egress();
    const [user = ""] = field(statusOf(pid), "Uid") ?? [];
    const as = (uid: string, ...command: string[]) =>
      run("setpriv", ["--reuid", uid, "--regid", uid, "--clear-groups", "--bounding-set=-all", ...command]).then(
        () => "done",
        (error: { stderr: string }) => error.stderr,
      );
    const state = join(agent.snapshots, "..");
    const files = ["agent.db", "seal.key", "egress-authority.pem"].map((name) => join(state, name));
    expect(files.filter((file) => !existsSync(file))).toEqual([]);
    for (const file of [...files, `/proc/${agent.pid}/environ`, `/proc/${agent.pid}/mem`]) {
      expect([file, await as(user, "cat", file)]).toEqual([file, expect.stringContaining("Permission denied")]);
    }
    expect(await as(user, "ls", state)).toContain("Permission denied");
    expect(await as(user, "touch", join(state, "..", "made"))).toContain("Permission denied");
    expect(await as(user, "docker", "version")).toContain("permission denied");
    expect(await as(user, "kill", "-0", String(agent.pid))).toMatch(/not permitted/i);
    expect(await as(user, "kill", "-0", String(pid))).toBe("done");
  });

  test("gets another user at each start", async () => {
    const first = await egress();
    const before = field(statusOf(first), "Uid");
    process.kill(first, "SIGKILL");
    await expect.poll(egress, { timeout: LIMIT_MS }).not.toBe(first);
    expect(field(statusOf(await egress()), "Uid")).not.toEqual(before);
  });
});

describe("what svc-egress starts", () => {
  let directory: string;
  let command: string[];
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "svc-confined-"));
    chmodSync(directory, 0o755);
    command = await egressCommand(runCommand, directory, { gateway: "127.0.0.1", port: 15_001, dnsPort: 53 });
    execFileSync("cc", ["-static", "-Os", "-o", join(directory, "forbidden"), FORBIDDEN]);
  }, LIMIT_MS);
  afterAll(() => rmSync(directory, { recursive: true }));

  const attempts = async (launcher: readonly string[]) => {
    const other = spawn("sleep", ["infinity"], { stdio: "ignore" });
    onTestFinished(() => void other.kill("SIGKILL"));
    const program = [...launcher, join(directory, "forbidden"), String(other.pid)];
    // The program has a network namespace of its own, in which all ports are free.
    const script = 'ip link set lo up && exec "$@"';
    const { stdout } = await run("unshare", ["--net", "sh", "-c", script, "sh", ...program], { timeout: LIMIT_MS });
    rmSync("/tmp/svc-forbidden.d", { recursive: true, force: true });
    const lines = stdout.trim().split("\n");
    return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), line.slice(line.lastIndexOf(" ") + 1)]));
  };

  test("can start no program, make no file, and reach no other process and no further interface of the kernel", async () => {
    const confined = await attempts(command.slice(0, 5));
    expect(confined.size).toBe(27);
    const refused = ["EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT"];
    expect([...confined].filter(([, error]) => !refused.includes(error))).toEqual([]);
    // Root makes the same attempts, which shows that each one is possible.
    const free = await attempts([]);
    expect([...free.keys()]).toEqual([...confined.keys()]);
    for (const what of [
      "child",
      "file",
      "directory",
      "unix socket",
      "packet program",
      "signal",
      "limits",
      "namespace",
    ]) {
      expect([what, free.get(what)]).toEqual([what, "done"]);
    }
  });

  test("is nothing when the user would be root or the socket cannot be opened", async () => {
    const at = (index: number, value: string) => command.map((word, i) => (i === index ? value : word));
    for (const wrong of [at(4, "0"), at(4, "4294967295"), at(4, "root"), at(3, "0"), at(1, "localhost")]) {
      await expect(run(wrong[0] ?? "", wrong.slice(1))).rejects.toMatchObject({
        code: 2,
        stderr: expect.stringContaining("USER is a number and not 0"),
      });
    }
    const foreign = at(1, "198.51.100.1");
    await expect(run(foreign[0] ?? "", foreign.slice(1))).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("bind: Cannot assign requested address"),
    });
  });

  test("the program refuses to serve when it is not confined", async () => {
    const child = spawn(command[5] ?? "", command.slice(6), {
      stdio: ["ignore", "pipe", "inherit", "ipc"],
      env: { SVC_EGRESS_SOCKETS: "4,5,6" },
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let said = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      said += chunk.toString("utf8");
    });
    const [code] = (await once(child, "close")) as [number];
    expect(code).toBe(1);
    expect(said).toMatch(/it runs as root.*it has no seccomp filter/);
  });
});
