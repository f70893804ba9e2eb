/** svc-runc on the real Docker daemon: a given network namespace, and a start from a memory image. */

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";

const run = promisify(execFile);
const RUNTIME = "/opt/svc/bin/svc-runc";
const RUNC_STATE = "/run/docker/runtime-runc/moby";
const RUN_DIRECTORY = "/run/svc-rtest";
// The program counts in memory and writes the count down: a count that goes on after a restore shows that memory came back. It
// appends, because these tests keep the disk of a later moment than the memory, in which a file that is replaced is another one.
const COUNTER = "i=0; while :; do i=$((i+1)); echo $i >> /tmp/count; sleep 0.05; done";
const IMAGE = "svc/test-busybox:latest";

async function output(command: string, ...parameters: string[]): Promise<string> {
  const { stdout } = await run(command, parameters, { timeout: 120_000 });
  return stdout.trim();
}

const docker = (...parameters: string[]) => output("docker", ...parameters);

interface Namespace {
  readonly path: string;
  readonly address: string;
}

async function makeNamespace(name: string, number: number): Promise<Namespace> {
  const address = `198.51.100.${number * 4 + 2}`;
  // A killed run leaves the namespace behind.
  await output("ip", "netns", "delete", name).catch(() => undefined);
  await output("ip", "netns", "add", name);
  onTestFinished(async () => void (await output("ip", "netns", "delete", name)));
  await output("ip", "link", "add", `rtest${number}`, "type", "veth", "peer", "name", "eth0", "netns", name);
  await output("ip", "-n", name, "address", "add", `${address}/30`, "dev", "eth0");
  await output("ip", "-n", name, "link", "set", "eth0", "up");
  return { path: `/run/netns/${name}`, address };
}

interface ContainerOptions {
  readonly image?: string;
  readonly network?: string;
  readonly command?: string;
  /** Options of `docker create`. */
  readonly more?: readonly string[];
}

async function makeContainer(options: ContainerOptions = {}): Promise<string> {
  const { image = IMAGE, network = "none", command = COUNTER, more = [] } = options;
  const id = await docker("create", "--runtime", "svc", "--network", network, ...more, image, "/bin/sh", "-c", command);
  onTestFinished(async () => {
    await docker("rm", "-f", id);
    await rm(join(RUN_DIRECTORY, "containers", id), { recursive: true, force: true });
  });
  return id;
}

async function annotate(id: string, annotations: { netns?: string; restore?: string; waits?: boolean }): Promise<void> {
  const directory = join(RUN_DIRECTORY, "containers", id);
  await mkdir(directory, { recursive: true });
  if (annotations.netns !== undefined) await writeFile(join(directory, "netns"), `${annotations.netns}\n`);
  if (annotations.waits === true) await writeFile(join(directory, "waits"), "");
  if (annotations.restore !== undefined) await symlink(annotations.restore, join(directory, "restore"));
}

const notesOf = (id: string) => join(RUN_DIRECTORY, "containers", id);
const waitsFor = (id: string) =>
  run("pgrep", ["-f", `svc-await ${notesOf(id)}`]).then(
    () => true,
    () => false,
  );

const countIn = async (id: string) => Number(await docker("exec", id, "tail", "-n", "1", "/tmp/count"));

async function checkpoint(id: string): Promise<string> {
  const images = await mkdtemp(join(tmpdir(), "svc-checkpoint-"));
  onTestFinished(() => rm(images, { recursive: true }));
  await docker("pause", id);
  await output(
    RUNTIME,
    "--root",
    RUNC_STATE,
    "checkpoint",
    "--leave-running",
    "--image-path",
    images,
    "--work-path",
    images,
    id,
  );
  await docker("unpause", id);
  return images;
}

describe("the svc runtime", () => {
  beforeAll(() => mkdir(RUN_DIRECTORY, { recursive: true }));
  afterAll(() => rm(RUN_DIRECTORY, { recursive: true, force: true }));

  test("starts a container without annotations as runc does", async () => {
    const id = await makeContainer();
    await docker("start", id);
    await expect.poll(() => countIn(id)).toBeGreaterThan(0);
    expect(await docker("exec", id, "ip", "link")).not.toContain("eth0");
  });

  test("puts an annotated container into the named network namespace", async () => {
    const namespace = await makeNamespace("svc-rtest-1", 1);
    const id = await makeContainer();
    await annotate(id, { netns: namespace.path });
    await docker("start", id);
    expect(await docker("exec", id, "ip", "address", "show", "eth0")).toContain(`${namespace.address}/30`);
  });

  test("leaves the namespace alone when the container goes", async () => {
    const namespace = await makeNamespace("svc-rtest-2", 2);
    const id = await makeContainer();
    await annotate(id, { netns: namespace.path });
    await docker("start", id);
    await docker("rm", "-f", id);
    expect(await output("ip", "-n", "svc-rtest-2", "address", "show", "eth0")).toContain(namespace.address);
  });

  test.each([
    { because: "the namespace does not exist", netns: "/run/netns/svc-none", network: "none", says: "does not exist" },
    { because: "the annotation is no path", netns: '/run/netns/x","a":"', network: "none", says: "is not a path" },
    {
      because: "the annotation leads elsewhere",
      netns: "/proc/1/ns/net",
      network: "none",
      says: "is not below /run/netns",
    },
    {
      because: "the container is on the host's network",
      netns: "svc-rtest-3",
      network: "host",
      says: "network mode none",
    },
  ])("refuses to start when $because", async ({ netns, network, says }) => {
    const real = netns === "svc-rtest-3" ? (await makeNamespace(netns, 3)).path : netns;
    const id = await makeContainer({ network });
    await annotate(id, { netns: real });
    await expect(docker("start", id)).rejects.toThrow(says);
  });

  test("starts the same container again out of its memory image", async () => {
    const namespace = await makeNamespace("svc-rtest-4", 4);
    const id = await makeContainer();
    await annotate(id, { netns: namespace.path });
    await docker("start", id);
    await expect.poll(() => countIn(id), { timeout: 90_000 }).toBeGreaterThan(200);
    const images = await checkpoint(id);
    const before = await countIn(id);
    await docker("kill", id);
    await docker("wait", id);
    await annotate(id, { restore: images });
    await docker("start", id);
    await expect.poll(() => countIn(id)).toBeGreaterThan(before);
    expect(await docker("exec", id, "ip", "address", "show", "eth0")).toContain(namespace.address);

    // Docker has used the memory image: the next start runs the program from its beginning.
    await docker("kill", id);
    await docker("wait", id);
    const begun = Date.now();
    await docker("start", id);
    // It counts at most twenty times a second. The first look may still find what the former program has written.
    const tooMany = async () => (await countIn(id)) - (Date.now() - begun) / 50;
    await expect.poll(tooMany).toBeLessThan(10);
  });

  test("starts another container, in another namespace, out of the same memory image", async () => {
    const first = await makeNamespace("svc-rtest-5", 5);
    const second = await makeNamespace("svc-rtest-6", 6);
    const id = await makeContainer();
    await annotate(id, { netns: first.path });
    await docker("start", id);
    await expect.poll(() => countIn(id)).toBeGreaterThan(5);
    const images = await checkpoint(id);
    const layer = await docker("commit", "--pause=false", id);
    onTestFinished(async () => void (await docker("image", "rm", "-f", layer)));
    const fork = await makeContainer({ image: layer });
    await annotate(fork, { netns: second.path, restore: images });
    await docker("start", fork);
    const reached = await countIn(fork);
    expect(reached).toBeGreaterThan(5);
    await expect.poll(() => countIn(fork)).toBeGreaterThan(reached);
    expect(await docker("exec", fork, "ip", "address", "show", "eth0")).toContain(second.address);
    const source = await countIn(id);
    await expect.poll(() => countIn(id)).toBeGreaterThan(source);
  });

  test("begins a start before its memory is named, and waits with the container's part done", async () => {
    const namespace = await makeNamespace("svc-rtest-11", 11);
    const id = await makeContainer();
    await annotate(id, { netns: namespace.path });
    await docker("start", id);
    await expect.poll(() => countIn(id)).toBeGreaterThan(5);
    const images = await checkpoint(id);
    const before = await countIn(id);
    await docker("kill", id);
    await docker("wait", id);
    await annotate(id, { waits: true });
    const starting = docker("start", id);
    await expect.poll(() => waitsFor(id)).toBe(true);
    await annotate(id, { restore: images });
    await starting;
    await expect.poll(() => countIn(id)).toBeGreaterThan(before);
    expect((await readdir(notesOf(id))).sort()).toEqual(["criu", "netns", "restored"]);
  });

  test.each([
    { what: "its note is", gone: "waiting" },
    { what: "its notes are", gone: "" },
  ])("ends a start that waits for memory when $what gone, and Docker removes the container", async ({ gone }) => {
    const namespace = await makeNamespace("svc-rtest-12", 12);
    const id = await makeContainer();
    await annotate(id, { netns: namespace.path, waits: true });
    const starting = docker("start", id);
    const failed = expect(starting).rejects.toThrow(`no memory came for ${id}`);
    await expect.poll(() => waitsFor(id)).toBe(true);
    await rm(join(notesOf(id), gone), { recursive: true });
    await failed;
    await docker("rm", id);
    expect(await waitsFor(id)).toBe(false);
  });

  // Root without CAP_SYS_RESOURCE may not ask for such a process's limits: scripts/host/criu/criu-preload.c reads them
  // elsewhere.
  test("keeps user and limits of a process that is not root's", async () => {
    const namespace = await makeNamespace("svc-rtest-8", 8);
    const id = await makeContainer({ more: ["--user", "1000:1000", "--ulimit", "nofile=1234:2345"] });
    await annotate(id, { netns: namespace.path });
    await docker("start", id);
    await expect.poll(() => countIn(id)).toBeGreaterThan(5);
    const about = () =>
      docker("exec", id, "grep", "-hE", "^(Uid|Gid|CapBnd|Seccomp|Max )", "/proc/1/status", "/proc/1/limits");
    const before = await about();
    expect(before).toMatch(/^Uid:\t1000\t/m);
    expect(before).toMatch(/^Max open files +1234 +2345 /m);
    const images = await checkpoint(id);
    const reached = await countIn(id);
    await docker("kill", id);
    await docker("wait", id);
    await annotate(id, { restore: images });
    await docker("start", id);
    await expect.poll(() => countIn(id)).toBeGreaterThan(reached);
    expect(await about()).toBe(before);
  });

  // CRIU by itself makes the sleep call fail, also in the container that runs on: scripts/host/criu/criu-preload.c prevents
  // that.
  test("does not interrupt a program that sleeps", async () => {
    const namespace = await makeNamespace("svc-rtest-9", 9);
    const command = "echo asleep > /tmp/state; usleep 40000000; echo woken > /tmp/state; sleep 100";
    const id = await makeContainer({ command });
    const state = () => docker("exec", id, "cat", "/tmp/state");
    await annotate(id, { netns: namespace.path });
    await docker("start", id);
    await expect.poll(state).toBe("asleep");
    const images = await checkpoint(id);
    expect(await state()).toBe("asleep");
    await docker("kill", id);
    await docker("wait", id);
    await annotate(id, { restore: images });
    await docker("start", id);
    expect(await state()).toBe("asleep");
    await expect.poll(state, { timeout: 120_000 }).toBe("woken");
  });

  // CRIU by itself waits for ever for an answer of such a frozen process: scripts/host/criu/criu-preload.c prevents that.
  test("keeps a stopped job stopped", async () => {
    const namespace = await makeNamespace("svc-rtest-10", 10);
    const id = await makeContainer({ command: `sleep 1000 & kill -STOP $!; ${COUNTER}` });
    // The kernel stops it when it runs next, and nothing lets it go on.
    const stopped = () => docker("exec", id, "sh", "-c", "cat /proc/[0-9]*/stat | grep -c ') T '");
    await annotate(id, { netns: namespace.path });
    await docker("start", id);
    await expect.poll(() => countIn(id)).toBeGreaterThan(5);
    await expect.poll(stopped).toBe("1");
    const images = await checkpoint(id);
    await expect.poll(stopped).toBe("1");
    await docker("kill", id);
    await docker("wait", id);
    await annotate(id, { restore: images });
    await docker("start", id);
    await expect.poll(stopped).toBe("1");
  });

  test("reports why a restore cannot work", async () => {
    const namespace = await makeNamespace("svc-rtest-7", 7);
    const empty = await mkdtemp(join(tmpdir(), "svc-checkpoint-"));
    onTestFinished(() => rm(empty, { recursive: true }));
    const id = await makeContainer();
    await annotate(id, { netns: namespace.path, restore: empty });
    await expect(docker("start", id)).rejects.toThrow("there are no CRIU images");
  });
});
