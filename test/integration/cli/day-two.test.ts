/** What operators and watchful users do by `svc`, on a whole platform with fake nodes. */

import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../support/cluster/cluster.ts";
import { untarred } from "../../support/images/untarred.ts";
import { builtSvc, SLOW } from "./running-svc.ts";

let cluster: Cluster;
let hook: Server;
beforeAll(async () => {
  cluster = await startCluster({ agents: 2, config: { webhookAllow: "127.0.0.0/8", buildPollMs: 20, nodesPort: 0 } });
  hook = createServer((_request, response) => void response.writeHead(418).end());
  await new Promise<void>((resolve) => void hook.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  hook.close();
  hook.closeAllConnections();
  await cluster.stop();
});
const svc = builtSvc(() => ({
  SVC_API_URL: cluster.url,
  SVC_SANDBOX_URL: cluster.edgeUrl,
  SVC_API_KEY: cluster.key,
  SVC_ADMIN_TOKEN: ADMIN_TOKEN,
}));
const json = async (...words: readonly string[]) => JSON.parse(await svc.out([...words, "-o", "json"])) as unknown;

async function created(...words: readonly string[]): Promise<string> {
  const id = await svc.out(["sandbox", "create", ...words]);
  onTestFinished(async () => void (await svc.run(["sandbox", "kill", id])));
  return id;
}

describe("the platform", () => {
  test("is shown with its checks, versions and nodes, and to a key alone without nodes", SLOW, async () => {
    const status = await svc.run(["status"]);
    expect(status.code).toBe(0);
    expect(status.stdout).toMatch(/^State: +ready$/m);
    expect(status.stdout).toMatch(/^n1 +ready/m);
    const own = await svc.run(["status"], { env: { SVC_ADMIN_TOKEN: undefined } });
    expect(own.code).toBe(0);
    expect(own.stdout).not.toContain("n1");
    expect(own.stderr).toContain("without the operators' token");
  });

  test("is compared with the version of the command before an upgrade", SLOW, async () => {
    const checked = await svc.run(["upgrade", "--check", "-o", "json"]);
    expect(checked.code).toBe(0);
    const { here, running, refused } = JSON.parse(checked.stdout) as Record<string, Record<string, unknown>>;
    expect(running).toMatchObject({
      orchestrator: { version: here?.["version"], schema: here?.["schema"] },
      nodes: [{ id: "n1" }, { id: "n2" }],
    });
    expect(refused?.["length"]).toBe(Number(checked.code));
    expect((await svc.run(["upgrade"])).code).toBe(2);
  });

  test("lists what runs by the processor time that it uses", SLOW, async () => {
    const id = await created();
    const sample = {
      cpuCount: 2,
      cpuUsedPct: 42.25,
      memUsed: 2 ** 20,
      memTotal: 2 ** 30,
      memCache: 0,
      diskUsed: 1,
      diskTotal: 2,
    };
    for (const agent of cluster.agents) agent.metrics.push({ at: Date.now(), ...sample });
    expect(await svc.out(["top"])).toMatch(new RegExp(`^${id} .* 42.3% +1.0MiB of 1.0GiB`, "m"));
    expect(await svc.out(["sandbox", "metrics", id])).toContain("42.3% of 2");
  });

  test("shows the limits of the key's project", SLOW, async () => {
    expect(await svc.out(["usage"])).toMatch(/^sandboxes +\d+ +\d+ +platform$/m);
  });

  test("lists and removes what nothing needs", SLOW, async () => {
    expect(await json("gc", "--dry-run")).toEqual([]);
    const { code, stderr } = await svc.run(["gc"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "Nothing found.\n" });
  });

  test("shows its audit log, of a project and of all", SLOW, async () => {
    await svc.out(["key", "create", "audited"]);
    expect(await svc.out(["audit", "--action", "createKey", "--limit", "1"])).toContain("createKey");
    expect(await svc.out(["audit", "--admin", "--limit", "50"])).toContain("createProject");
  });
});

describe("events", () => {
  test("are listed, the oldest first, and told what ended a sandbox", SLOW, async () => {
    const id = await svc.out(["sandbox", "create"]);
    await svc.out(["sandbox", "kill", id]);
    const lines = (await svc.out(["events", "--sandbox", id, "--no-headers"])).split("\n");
    expect(lines.map((line) => line.split(/ {3,}/)[1])).toEqual(["created", "killed"]);
    expect(lines[1]).toContain("kill_reason=request");
    const killed = await svc.out(["events", "--sandbox", id, "--type", "killed", "--no-headers"]);
    expect(killed.split(/ +/)).toEqual(lines[1]?.split(/ +/));
  });

  test("are followed, a line of JSON each where that is asked for", SLOW, async () => {
    const running = svc.start(["events", "-f", "--type", "paused", "-o", "json", "--limit", "1"]);
    onTestFinished(() => running.interrupt());
    const id = await created();
    await svc.out(["sandbox", "pause", id]);
    // The stream begins when it is open: one event more comes until then.
    await expect
      .poll(
        async () => {
          if (running.output().includes(id)) return true;
          await svc.out(["sandbox", "resume", id]);
          await svc.out(["sandbox", "pause", id]);
          return running.output().includes(id);
        },
        { timeout: 60_000 },
      )
      .toBe(true);
    running.interrupt();
    const ended = await running.ended;
    expect(ended.code).toBe(130);
    for (const line of ended.stdout.trimEnd().split("\n")) {
      expect(JSON.parse(line)).toMatchObject({ type: "sandbox.lifecycle.paused" });
    }
  });
});

describe("one sandbox", () => {
  test("is explained: running with its node and what ends it, paused, and ended", SLOW, async () => {
    const id = await created("-t", "30m");
    const running = await json("explain", id);
    expect(running).toMatchObject({
      state: "running",
      nodeID: expect.stringMatching(/^n[12]$/),
      nodeEvent: { kind: "ready" },
      lastEvents: [{}],
    });
    expect((running as { next: string }).next).toMatch(/^it ends in 2\dm/);
    await svc.out(["sandbox", "pause", id]);
    expect(await svc.out(["explain", id])).toMatch(/^Why: +paused/m);
    await svc.out(["sandbox", "resume", id, "-t", "30m"]);
    await svc.out(["sandbox", "rewind", id, await svc.out(["snapshot", "create", id])]);
    expect(await svc.out(["explain", id])).toMatch(/^Why: +rewound/m);
    await svc.out(["sandbox", "kill", id]);
    const text = await svc.out(["explain", id], { env: { SVC_ADMIN_TOKEN: undefined } });
    expect(text).toMatch(/^Why: +request/m);
    expect(text).toMatch(/^Next: +nothing: it ended/m);
    expect(text).toMatch(/^Node: +\(only operators see nodes\)/m);
    expect((await svc.run(["explain", "nosuchsandbox"])).code).toBe(3);
  });

  test("is asked what it may reach, with the verdict as exit code", SLOW, async () => {
    const id = await created();
    expect(await svc.out(["network", "check", id, "example.org:443"])).toMatch(/^Verdict: +allow$/m);
    for (const destination of ["https://example.org/a?b=c:1", "http://u:p@Example.org", "https://example.org:8443/"])
      expect(await svc.out(["network", "check", id, destination])).toMatch(/^Verdict: +allow$/m);
    const asked = [443, 80, 8443].map((port) => expect.objectContaining({ host: "example.org", port }) as unknown);
    expect(cluster.agents.flatMap(({ checks }) => checks)).toEqual(expect.arrayContaining(asked));
    for (const agent of cluster.agents) {
      agent.onCheck = () => ({
        verdict: "deny",
        rule: "denyOut",
        reason: "it is denied",
        dial: "address",
        addresses: [],
      });
    }
    expect((await svc.run(["network", "check", id, "example.org"])).code).toBe(1);
  });

  test("shows what it has tried to reach, with hostile names escaped", SLOW, async () => {
    const id = await created();
    for (const agent of cluster.agents) {
      const entry = {
        at: Date.now(),
        protocol: "dns" as const,
        address: "",
        port: 53,
        name: "a\u001b[2Jb",
        recordType: "A",
      };
      const more = { verdict: "deny" as const, rule: "denyOut 0.0.0.0/0", count: 3, sentBytes: 0, receivedBytes: 0 };
      agent.networkLog = { entries: [{ ...entry, ...more }], suppressed: 2 };
    }
    const { stdout, stderr } = await svc.run(["network", "log", id]);
    expect(stdout).toContain("a\\x1b[2Jb:53");
    expect(stderr).toContain("2 more decisions");
  });
});

describe("a webhook", () => {
  test("is created, tested, disabled and deleted by its name", SLOW, async () => {
    const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`;
    const words = ["webhook", "create", "ops", url, "--event", "killed,paused"];
    expect(await svc.out(words, { input: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n" })).toContain("created");
    expect(await json("webhook", "list")).toMatchObject([
      { name: "ops", events: ["sandbox.lifecycle.killed", "sandbox.lifecycle.paused"] },
    ]);
    await svc.out(["webhook", "test", "ops"]);
    await expect.poll(() => svc.out(["webhook", "deliveries", "ops"]), { timeout: 60_000 }).toContain("418");
    const [delivery] = (await json("webhook", "deliveries", "ops")) as [{ readonly id: string }];
    const attempts = () => svc.out(["webhook", "attempts", "ops", delivery.id]);
    // An id can have 418 in it, too: the answer may not be there yet.
    await expect.poll(attempts, { timeout: 60_000 }).toMatch(/^1 +\d{4}-\S+ +418 +\d+ms /m);
    const unknown = await svc.run(["webhook", "attempts", "ops", "none"]);
    expect([unknown.code, unknown.stderr]).toEqual([3, expect.stringContaining("has no delivery 'none'")]);
    await svc.out(["webhook", "set", "ops", "--disable"]);
    expect(await svc.out(["webhook", "list"])).toMatch(/^ops +disabled/m);
    await svc.out(["webhook", "delete", "ops"]);
    expect((await svc.run(["webhook", "test", "ops"])).code).toBe(3);
  });
});

/** Of all nodes: which of them builds is not known. */
function buildThatCopiesTo(destination: string) {
  const all = cluster.agents.flatMap(({ builds }) => [...builds.values()]);
  return all.find(({ body }) => body.steps.some((step) => "destination" in step && step.destination === destination));
}

describe("a template", () => {
  test("is built from a folder with its files, its log shown, and tagged", SLOW, async () => {
    const folder = join(svc.folder, "app");
    mkdirSync(join(folder, "src"), { recursive: true });
    writeFileSync(join(folder, "Dockerfile"), "FROM debian:12\nRUN true\nCOPY src /srv/\n");
    writeFileSync(join(folder, ".dockerignore"), "src/*.log\n");
    writeFileSync(join(folder, "src/main.py"), "print(1)\n");
    writeFileSync(join(folder, "src/run.log"), "left out\n");
    const built = await svc.run(["template", "build", "my-app:v1", folder, "--memory-size", "512"]);
    expect(built).toMatchObject({ code: 0 });
    expect(built.stderr).toContain("[builder 4/6] COPY");

    const asked = buildThatCopiesTo("/srv/");
    expect(asked?.body.steps.map(({ type }) => type)).toEqual(["USER", "WORKDIR", "RUN", "COPY", "USER", "WORKDIR"]);
    const [archive] = asked?.files.values() ?? [];
    const files = await untarred(gunzipSync(archive ?? Buffer.alloc(0)));
    expect([...files.keys()]).toEqual(["src", "src/main.py"]);

    expect(await svc.out(["template", "list"])).toMatch(/my-app +ready +\d+ +512MiB/);
    expect(await svc.out(["template", "logs", "my-app:v1"])).toContain("pulling the image");
    await svc.out(["template", "tag", "my-app:v1", "stable"]);
    expect(await svc.out(["template", "tags", "my-app"])).toContain("stable");
    expect(await json("template", "info", "my-app")).toMatchObject([{ status: "ready" }]);
    await created("my-app:v1");
    expect((await svc.run(["template", "build", "my-app:v1", "nowhere"])).code).toBe(3);
  });

  test("is built from a Dockerfile on standard input, with the files whose texts it has", SLOW, async () => {
    const folder = join(svc.folder, "texts");
    mkdirSync(folder);
    writeFileSync(join(folder, ".dockerignore"), "*\n");
    const input =
      'FROM debian:12 AS conf\nARG A=1\nARG B=2\nENV C=$A$B\nCOPY <<EOF /etc/app.conf\nc="$C"\nEOF\nFROM scratch\n';
    const more = ["--build-arg", "A", "--build-arg", "B", "--target", "conf"];
    const words = ["template", "build", "texts", folder, "-f", "-", ...more];
    const built = await svc.run(words, { input, env: { A: "seven" } });
    expect(built).toMatchObject({ code: 0 });
    expect(built.stderr).toContain("the build argument B has no value, here or in the environment");
    const asked = buildThatCopiesTo("/etc/app.conf");
    expect(asked?.body.steps.filter(({ type }) => type === "COPY")).toMatchObject([
      { source: "EOF", destination: "/etc/app.conf", user: "root", mode: "644" },
    ]);
    const [archive] = asked?.files.values() ?? [];
    const files = await untarred(gunzipSync(archive ?? Buffer.alloc(0)));
    expect([...files].map(([path, bytes]) => [path, bytes.toString()])).toEqual([["EOF", 'c="seven2"\n']]);

    writeFileSync(join(folder, ".dockerignore"), "secret[\n");
    expect(await svc.run(words, { input })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(".dockerignore: 'secret[' is not a pattern") as string,
    });
    writeFileSync(join(folder, "e2b.Dockerfile"), "FROM debian:12\n");
    expect(await svc.run(["template", "build", "texts", folder])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`name it with --file: ${join(folder, "e2b.Dockerfile")}`) as string,
    });
    writeFileSync(join(folder, "dockerfile"), "FROM debian:12\nONBUILD RUN true\n");
    expect((await svc.run(["template", "build", "texts", folder])).stderr).toContain("line 2: ONBUILD");
  });

  test("whose build fails ends with 1 and the reason, escaped", SLOW, async () => {
    const folder = join(svc.folder, "broken");
    mkdirSync(folder);
    writeFileSync(join(folder, "Dockerfile"), "FROM debian:12\nRUN false\n");
    for (const agent of cluster.agents) {
      agent.onBuild = (build) => build.fail("the command \u001b]0;x\u0007 failed", "1");
    }
    const { code, stderr } = await svc.run(["template", "build", "broken", folder]);
    expect(code).toBe(1);
    expect(stderr).toContain("the command \\x1b]0;x\\x07 failed");
  });
});

describe("operators", () => {
  test("list nodes, read one, cordon it and take it back", SLOW, async () => {
    expect(await svc.out(["node", "list"])).toMatch(/^n2 +ready/m);
    expect(await svc.out(["node", "info", "n2"])).toMatch(/^Can: +.*memorySnapshots/m);
    expect(await svc.out(["node", "cordon", "n2"])).toBe("node/n2 cordoned");
    expect(await json("node", "info", "n2")).toMatchObject({ status: "draining", events: [{ kind: "cordoned" }, {}] });
    expect(await svc.out(["node", "info", "n2"])).toMatch(/^Event .* ago: cordoned$/m);
    expect(await svc.out(["node", "uncordon", "n2"])).toBe("node/n2 takes sandboxes");
    expect((await svc.run(["node", "info", "nobody"])).code).toBe(3);
    expect(await svc.out(["node", "token", "--kind", "edge"])).toMatch(/^\S+$/);
  });

  test("drain a node, and are told when it is done", SLOW, async () => {
    const { code, stdout, stderr } = await svc.run(["node", "drain", "n2"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "node/n2 done\n" });
    expect(stderr).toContain("node n2: ");
    await svc.out(["node", "uncordon", "n2"]);
  });

  test("create, limit, close and delete a project, and act for it", SLOW, async () => {
    const id = await svc.out(["project", "create", "team blue"]);
    await svc.out(["project", "limit", id, "--limits", "sandboxes=3"]);
    expect(await svc.out(["usage", "--project", id])).toMatch(/^sandboxes +0 +3 +project$/m);
    await svc.out(["project", "limit", id, "--limits", "sandboxes=default"]);
    await svc.out(["project", "disable", id, "--reason", "for a test"]);
    expect((await svc.run(["sandbox", "create", "--project", id])).code).toBe(4);
    await svc.out(["project", "enable", id]);
    expect(await svc.out(["project", "list"])).toMatch(/^team blue +active/m);
    expect((await svc.run(["project", "delete", id])).code).toBe(2);
    expect(await svc.out(["project", "delete", id, "--force"])).toContain("is being deleted");
  });
});
