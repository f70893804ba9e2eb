/** One hostile sandbox on bare runc: the test starts, dumps, copies and restores it, as a fork does. */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readFile, rm, rmdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { openCgroup } from "../../../agent/containers/cgroup/cgroup.ts";
import { until } from "../runner/until.ts";
import { containerConfig } from "./escape-config.ts";
import { type EscapeHost, type Layers, mountOverlay } from "./escape-host.ts";

const run = promisify(execFile);
const ANNOTATIONS = "/run/svc-escape/containers";
const LIMIT_MS = 90_000;

export interface Outcome {
  /** One line for each thing that the sandbox holds open, with what it did to the directories. */
  readonly did: string;
  readonly ended: "dump refused" | "restore refused" | "restored";
  /** The reason of a refusal. */
  readonly reason: string;
  /** The events in the canaries. */
  readonly touched: readonly string[];
}

interface RuncSandbox {
  readonly id: string;
  /** Returns a path in the sandbox's own directory: `bundle`, `upper`, `merged`, … */
  at(name: string): string;
  runc(...parameters: string[]): Promise<{ readonly code: number; readonly said: string }>;
  remove(): Promise<void>;
}

/** Runs the hostile program with `seed` under a runtime with these layers. `network` is a path below /run/netns. */
export async function escapeRun(host: EscapeHost, seed: number, layers: Layers, network: string): Promise<Outcome> {
  const runtime = await host.runtime(layers);
  // Without path resolution CRIU would follow a link through another process, because its confinement needs /proc.
  const through = layers.paths ? String(process.pid) : "self";
  const args = ["/hostile", String(seed), through, ...host.canaries];
  const make = (name: string, upper?: string) =>
    makeSandbox(host, runtime, { name: `${name}-${seed}`, args, network, upper });
  await host.touched();
  const source = await make("source");
  try {
    await mustRun(source, "create", "--bundle", source.at("bundle"), "--pid-file", source.at("pid"), source.id);
    await mustRun(source, "start", source.id);
    await until(() => exists(source.at("merged/done")), { what: `the work of seed ${seed}`, timeoutMs: LIMIT_MS });
    const did = await readFile(source.at("merged/done"), "utf8");
    // As the agent freezes it: `runc pause` gives up after a few milliseconds, which a busy machine exceeds.
    await openCgroup(Number(await readFile(source.at("pid"), "utf8")), source.id).freeze();
    const [images, work] = [source.at("images"), source.at("work")];
    const where = ["--image-path", images, "--work-path", work];
    const dumped = await source.runc("checkpoint", "--leave-running", ...where, source.id);
    if (dumped.code !== 0) {
      const reason = await complaint(join(work, "dump.log"));
      return { did, ended: "dump refused", reason, touched: await host.touched() };
    }
    const fork = await make("fork", source.at("upper"));
    try {
      await mkdir(join(ANNOTATIONS, fork.id), { recursive: true });
      await symlink(images, join(ANNOTATIONS, fork.id, "restore"));
      const restored = await fork.runc("create", "--bundle", fork.at("bundle"), fork.id);
      if (restored.code !== 0)
        return { did, ended: "restore refused", reason: restored.said, touched: await host.touched() };
      const before = await readFile(fork.at("merged/alive"), "utf8");
      const beats = async () => (await readFile(fork.at("merged/alive"), "utf8")) !== before;
      await until(beats, { what: `life in the restored sandbox of seed ${seed}`, timeoutMs: LIMIT_MS });
      return { did, ended: "restored", reason: "", touched: await host.touched() };
    } finally {
      await fork.remove();
    }
  } finally {
    await source.remove();
  }
}

const exists = (path: string) =>
  readFile(path).then(
    () => true,
    () => false,
  );

async function mustRun(sandbox: RuncSandbox, ...parameters: string[]): Promise<void> {
  const { code, said } = await sandbox.runc(...parameters);
  if (code !== 0) throw new Error(`runc ${parameters[0]} ended with ${code}: ${said}`);
}

async function lastLine(path: string): Promise<string> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.trimEnd().split("\n").at(-1) ?? "";
}

async function complaint(log: string): Promise<string> {
  const lines = (await readFile(log, "utf8").catch(() => "")).split("\n");
  return lines.find((line) => /Error \((?!.*(rlimit|cgroupd))/.test(line)) ?? "";
}

interface Wish {
  readonly name: string;
  readonly args: readonly string[];
  readonly network: string;
  /** The disk of the sandbox that this one copies. */
  readonly upper: string | undefined;
}

async function makeSandbox(host: EscapeHost, runtime: string, wish: Wish): Promise<RuncSandbox> {
  const id = `svc-escape-${wish.name}-${process.pid}`;
  const at = (name: string) => join(host.work, id, name);
  for (const name of ["lower/etc", "lower/tmp", "upper", "overlay", "merged", "bundle", "images", "work", "state"])
    await mkdir(at(name), { recursive: true });
  for (const name of ["proc", "dev", "sys"]) await mkdir(at(`lower/${name}`));
  await cp(host.hostile, at("lower/hostile"));
  await writeFile(at("lower/etc/hosts"), "");
  await writeFile(at("hosts"), "127.0.0.1 localhost\n");
  if (wish.upper !== undefined) await run("cp", ["-a", `${wish.upper}/.`, at("upper")]);
  await mountOverlay(at("lower"), at("upper"), at("overlay"), at("merged"));
  const { args, network } = wish;
  await writeFile(
    at("bundle/config.json"),
    containerConfig({ id, root: at("merged"), args, network, hosts: at("hosts") }),
  );
  // Docker's state directory also lies behind a link: /var/run/docker.
  await symlink("state", at("state-link"));
  // A dump keeps the container's output, and a restore can make only a device of the container's own again. runc's messages
  // go to its log.
  const runc = async (...parameters: string[]) => {
    const log = at("runc.log");
    await rm(log, { force: true });
    const child = spawn(runtime, ["--root", at("state-link"), "--log", log, ...parameters], {
      stdio: "ignore",
      env: { PATH: `${dirname(runtime)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin` },
    });
    const [code] = (await once(child, "exit")) as [number | null];
    return { code: code ?? -1, said: code === 0 ? "" : await lastLine(log) };
  };
  return {
    id,
    at,
    runc,
    async remove() {
      await runc("delete", "--force", id);
      await run("umount", ["-l", at("merged")]);
      await rm(join(ANNOTATIONS, id), { recursive: true, force: true });
      // The last sandbox removes the directories; while another one has files there, they are not empty.
      await rmdir(ANNOTATIONS)
        .then(() => rmdir(dirname(ANNOTATIONS)))
        .catch(() => undefined);
      await rm(join(host.work, id), { recursive: true, force: true });
    },
  };
}
