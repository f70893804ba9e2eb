/** What `svc` does inside of a sandbox: a platform with a fake node, and a real envd where its sandboxes are. */

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Cluster, startCluster } from "../../support/cluster/cluster.ts";
import { sharedEnvd } from "../envd/running-envd.ts";
import { builtSvc, SLOW } from "./running-svc.ts";

const { envd } = sharedEnvd();
let cluster: Cluster;
let id: string;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());
const svc = builtSvc(() => ({ SVC_API_URL: cluster.url, SVC_SANDBOX_URL: envd.url, SVC_API_KEY: cluster.key }));
beforeAll(async () => {
  id = await svc.out(["sandbox", "create", "base"]);
});
const exec = (words: readonly string[], input?: string) =>
  svc.run(["sandbox", "exec", id, "--", ...words], input === undefined ? {} : { input });

describe("exec", () => {
  test("passes output, errors and the exit code on", SLOW, async () => {
    const ended = await exec(["sh", "-c", "echo out; echo err >&2; exit 7"]);
    expect(ended).toEqual({ code: 7, stdout: "out\n", stderr: "err\n" });
  });

  test("pipes standard input, whatever its bytes and however much", SLOW, async () => {
    const input = `\u001b[31m${"0123456789abcdef".repeat(20_000)}`;
    const { code, stdout } = await exec(["cat"], input);
    expect(code).toBe(0);
    expect(stdout === input).toBe(true);
  });

  test("ends with its program, also where that does not read its input", SLOW, async () => {
    expect(await exec(["true"], "x".repeat(500_000))).toMatchObject({ code: 0 });
  });

  test("says in the edge's words why the sandbox was not reached", SLOW, async () => {
    const message = "The sandbox is running but port is not open";
    const edge = createServer((incoming, answer) => {
      incoming.resume();
      answer.writeHead(502, { "content-type": "application/json; charset=utf-8" });
      answer.end(JSON.stringify({ sandboxId: id, message, port: 49_983, code: 502 }));
    });
    await new Promise<void>((resolve) => void edge.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      edge.close();
      edge.closeAllConnections();
    });
    const env = { SVC_SANDBOX_URL: `http://127.0.0.1:${(edge.address() as AddressInfo).port}` };
    const { code, stderr } = await svc.run(["sandbox", "exec", id, "--", "true"], { env });
    expect(code).toBe(1);
    expect(stderr).toContain(`sandbox ${id}: ${message}`);
  });

  test("takes a folder, variables and arguments without a shell between", SLOW, async () => {
    const words = [
      "sandbox",
      "exec",
      id,
      "--cwd",
      "/",
      "-e",
      "A=b c",
      "--",
      "sh",
      "-c",
      'pwd; echo "$A" "$1"',
      "-",
      "*",
    ];
    expect(await svc.out(words)).toBe("/\nb c *");
  });

  test("without -- leaves the program its own options, as docker exec does", SLOW, async () => {
    expect(await svc.out(["sandbox", "exec", "-e", "A=b", id, "sh", "-u", "-c", 'echo "$A"'])).toBe("b");
  });

  test("of a program that a signal ended has 128 and its number", SLOW, async () => {
    expect((await exec(["sh", "-c", "kill -9 $$"])).code).toBe(137);
  });

  test("ends a program whose time is over, with 124", SLOW, async () => {
    const words = ["sandbox", "exec", id, "--timeout", "1s", "--", "sleep", "600"];
    expect((await svc.run(words)).code).toBe(124);
  });

  test("ends its program when it is interrupted itself", SLOW, async () => {
    const running = svc.start(["sandbox", "exec", id, "--", "sh", "-c", "echo begun; exec sleep 601"]);
    await expect.poll(running.output, { timeout: 60_000 }).toBe("begun\n");
    running.interrupt();
    expect((await running.ended).code).toBe(130);
    expect((await exec(["sh", "-c", "pgrep -f '[s]leep 601'"])).stdout).toBe("");
  });

  test("ends its program when nobody reads the output any more", SLOW, async () => {
    const words = ["sh", "-c", "echo begun; exec yes sleep-603"];
    const running = svc.start(["sandbox", "exec", id, "--", ...words]);
    await expect.poll(running.output, { timeout: 60_000 }).toContain("begun\n");
    running.stopReading();
    expect((await running.ended).code).toBe(1);
    expect((await exec(["sh", "-c", "pgrep -f '[y]es sleep-603'"])).stdout).toBe("");
  });

  test("with --detach prints the process id and leaves the program running", SLOW, async () => {
    const pid = await svc.out(["sandbox", "exec", id, "--detach", "--", "sleep", "602"]);
    expect(pid).toMatch(/^\d+$/);
    expect((await exec(["kill", pid])).code).toBe(0);
  });

  test("of a program or a sandbox that is not there has 3, or what the sandbox says", SLOW, async () => {
    expect((await svc.run(["sandbox", "exec", "nosuchsandbox", "--", "true"])).code).toBe(3);
    const missing = await exec(["no-such-program"]);
    expect(missing.code).not.toBe(0);
    expect(missing.stderr).toContain("no-such-program");
  });

  test("resumes a paused sandbox first, and says so", SLOW, async () => {
    await svc.out(["sandbox", "pause", id]);
    const ended = await exec(["echo", "hi"]);
    expect(ended).toMatchObject({ code: 0, stdout: "hi\n" });
    expect(ended.stderr).toContain(`resuming sandbox ${id}`);
  });
});

test("connect without a terminal says what to use in its place", SLOW, async () => {
  const { code, stderr } = await svc.run(["sandbox", "connect", id]);
  expect(code).toBe(2);
  expect(stderr).toContain("svc sandbox exec");
});

describe("cp", () => {
  test("copies a file both ways, with its right to be run", SLOW, async () => {
    const here = join(svc.folder, "run.sh");
    writeFileSync(here, "#!/bin/sh\necho ran\n");
    chmodSync(here, 0o755);
    await svc.out(["sandbox", "cp", here, `${id}:${envd.home}/`]);
    expect((await exec([`${envd.home}/run.sh`])).stdout).toBe("ran\n");
    const back = join(svc.folder, "back.sh");
    await svc.out(["sandbox", "cp", `${id}:${envd.home}/run.sh`, back]);
    expect(readFileSync(back)).toEqual(readFileSync(here));
    expect(statSync(back).mode & 0o111).not.toBe(0);
  });

  test("copies a folder both ways, with odd names and without links", SLOW, async () => {
    const here = join(svc.folder, "tree");
    mkdirSync(join(here, "deep/empty"), { recursive: true });
    writeFileSync(join(here, "ü b.txt"), "one");
    writeFileSync(join(here, "deep/large"), Buffer.alloc(3_000_000, 7));
    symlinkSync("/etc/passwd", join(here, "link"));
    const sent = await svc.run(["sandbox", "cp", here, `${id}:${envd.home}/copy`]);
    expect(sent).toMatchObject({ code: 0, stdout: "" });
    expect(sent.stderr).toContain("not copied, because it is no file or folder: link");

    symlinkSync("/etc/passwd", join(envd.home, "copy/planted"));
    const back = join(svc.folder, "tree-back");
    const got = await svc.run(["sandbox", "cp", `${id}:${envd.home}/copy`, back]);
    expect(got.code).toBe(0);
    expect(readFileSync(join(back, "ü b.txt"), "utf8")).toBe("one");
    expect(readFileSync(join(back, "deep/large")).equals(readFileSync(join(here, "deep/large")))).toBe(true);
    expect(existsSync(join(back, "deep/empty"))).toBe(true);
    expect(existsSync(join(back, "planted"))).toBe(false);
  });

  test.each<[string, "cut" | "interrupt", number]>([
    ["a connection that breaks", "cut", 1],
    ["Ctrl-C", "interrupt", 130],
  ])(
    "out of a sandbox leaves no half of a file behind %s, and the one before it as it was",
    SLOW,
    async (_name, how, code) => {
      const env = { SVC_SANDBOX_URL: await startHalfway(how === "cut") };
      writeFileSync(join(envd.home, "long"), Buffer.alloc(1_000_000));
      const folder = join(svc.folder, `half-${how}`);
      mkdirSync(folder);
      writeFileSync(join(folder, "long"), "before");
      const words = ["sandbox", "cp", `${id}:${envd.home}/long`, folder];
      const running = svc.start(words, { env });
      if (how === "interrupt") {
        await expect.poll(() => readdirSync(folder).length, { timeout: 60_000 }).toBe(2);
        running.interrupt();
      }
      expect((await running.ended).code).toBe(code);
      expect(running.errors()).toContain(
        how === "cut" ? `the connection broke while ${envd.home}/long was copied` : "",
      );
      expect(readdirSync(folder)).toEqual(["long"]);
      expect(readFileSync(join(folder, "long"), "utf8")).toBe("before");
    },
  );

  test(
    "copies a folder where docker cp does: its content for dir/., and never above the folder that is named",
    SLOW,
    async () => {
      const here = join(svc.folder, "places");
      mkdirSync(join(here, "app/sub"), { recursive: true });
      writeFileSync(join(here, "app/file"), "one");
      const there = join(envd.home, "places");
      mkdirSync(there);
      for (const [from, to] of [
        [`${here}/app/.`, "content"],
        [`${here}/app/sub/..`, "parent"],
        [`${here}/app/`, "named"],
      ] as const) {
        mkdirSync(join(there, to));
        await svc.out(["sandbox", "cp", from, `${id}:${there}/${to}`]);
      }
      await svc.out(["sandbox", "cp", `${here}/app`, `${id}:${there}/fresh/`]);
      expect(readdirSync(there).toSorted()).toEqual(["content", "fresh", "named", "parent"]);
      expect(readdirSync(join(there, "content")).toSorted()).toEqual(["file", "sub"]);
      expect(readdirSync(join(there, "fresh")).toSorted()).toEqual(["file", "sub"]);
      expect([readdirSync(join(there, "named")), readdirSync(join(there, "parent"))]).toEqual([["app"], ["app"]]);

      mkdirSync(join(here, "back"));
      await svc.out(["sandbox", "cp", `${id}:${there}/content/.`, join(here, "back")]);
      expect(readdirSync(join(here, "back")).toSorted()).toEqual(["file", "sub"]);
      await svc.out(["sandbox", "cp", `${id}:${there}/content`, join(here, "back")]);
      expect(readdirSync(join(here, "back")).toSorted()).toEqual(["content", "file", "sub"]);
      await svc.out(["sandbox", "cp", `${id}:${there}/content`, `${join(here, "new")}/`]);
      expect(readdirSync(join(here, "new")).toSorted()).toEqual(["file", "sub"]);
    },
  );

  test.each([
    ["-", "ID:/tmp/x", 2],
    ["ID:/etc/passwd", "-", 2],
    ["nothing-there", "ID:/tmp/x", 3],
    ["ID:/nothing-there", "here", 3],
    ["a", "b", 2],
    ["ID:/a", "ID:/b", 2],
  ])("of %s to %s ends with %i", async (from, to, code) => {
    const named = (text: string) => text.replace(/^ID/, id);
    expect((await svc.run(["sandbox", "cp", named(from), named(to)])).code).toBe(code);
  });
});

/** The way to envd, on which a file stops after its first part: the connection is cut there, or stays silent. */
async function startHalfway(isCut: boolean): Promise<string> {
  const server = createServer((incoming, answer) => {
    if (incoming.method === "GET" && incoming.url?.startsWith("/files") === true) {
      answer.writeHead(200, { "content-length": "1000000" });
      answer.write(Buffer.alloc(200_000), () => {
        if (isCut) answer.destroy();
      });
      return;
    }
    const { method, headers, url } = incoming;
    const outgoing = request(`${envd.url}${url}`, { method, headers }, (said) => {
      answer.writeHead(said.statusCode ?? 502, said.headers);
      said.pipe(answer);
    });
    incoming.pipe(outgoing.on("error", () => answer.destroy()));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("forward", () => {
  let server: Server;
  beforeAll(async () => {
    server = createServer(({ headers, url }, response) => {
      const { "e2b-sandbox-id": sandbox, "e2b-sandbox-port": port, host } = headers;
      response.end(JSON.stringify({ sandbox, port, host, path: url }));
    });
    server.on("upgrade", ({ url }, socket) => {
      socket.on("error", () => undefined);
      socket.end(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: test\r\nConnection: Upgrade\r\n\r\n${url}`);
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => {
    server.close();
    server.closeAllConnections();
  });

  test("serves a port of the sandbox here until it is ended", SLOW, async () => {
    const env = { SVC_SANDBOX_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
    const running = svc.start(["forward", id, "0:8000"], { env });
    onTestFinished(() => running.interrupt());
    await expect.poll(running.output, { timeout: 60_000 }).toContain(`-> ${id}:8000`);
    const [address = ""] = /http:\S+/.exec(running.output()) ?? [];
    const answer = (await (await fetch(`${address}/a?b=c`)).json()) as Record<string, unknown>;
    expect(answer).toEqual({ sandbox: id, port: "8000", host: new URL(address).host, path: "/a?b=c" });
    running.interrupt();
    expect((await running.ended).code).toBe(0);
    await expect(fetch(address)).rejects.toThrow();
  });

  test("takes what kubectl takes: :REMOTE and the name localhost", SLOW, async () => {
    const running = svc.start(["forward", id, ":8000", "--host", "localhost"]);
    onTestFinished(() => running.interrupt());
    await expect.poll(running.output, { timeout: 60_000 }).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d* -> .*:8000$/m);
  });

  test("says what to do about an address that this machine does not have", SLOW, async () => {
    const { code, stderr } = await svc.run(["forward", id, "8000", "--host", "192.0.2.1"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/cannot listen on 192\.0\.2\.1:8000: EADDRNOTAVAIL\n.*`ip address`/);
  });

  test("refuses what are no ports", SLOW, async () => {
    expect((await svc.run(["forward", id, "80:0"])).code).toBe(2);
    expect((await svc.run(["forward", id, "web"])).code).toBe(2);
    expect((await svc.run(["forward", id, ":0"])).code).toBe(2);
  });
});
