/**
 * Sandboxes on bare runc whose processes talk with each other (`talk.c`), in network slots as the agent makes them. The
 * runtime is this checkout's `svc-runc`, with this checkout's settings of CRIU; the programs beside it are the installed ones.
 */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { hostAnnotations } from "../../../agent/containers/annotations.ts";
import { openCgroup } from "../../../agent/containers/cgroup/cgroup.ts";
import { runCommand } from "../../../agent/host/command.ts";
import { planNetwork, type Slot } from "../../../agent/network/addresses.ts";
import { hostLinks } from "../../../agent/network/links.ts";
import { type Connections, hostConnections } from "../../../agent/snapshots/connections/connections.ts";
import type { Inside } from "../../../agent/snapshots/store/manifest.ts";
import { containerConfig } from "../escape/escape-config.ts";

const run = promisify(execFile);
const HERE = import.meta.dirname;
const SCRIPTS = join(HERE, "../../../scripts/host");
const OWN = process.env["SVC_TEST_AGENT"] ?? "";
const NETWORK = `svct${OWN}`;
/** Below /run, because CRIU needs a directory of that name where it sees nothing else of the host. */
const RUN_DIRECTORY = `/run/svc-talktest${OWN}`;
const INSTALLED = "/opt/svc/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** `connections`: as the agent dumps and restores now. `closing`: as earlier versions did. */
type Settings = "connections" | "closing";

/** A word for each connection: `ok` or `open`, or the reason of its end. */
interface Talk {
  readonly round: number;
  readonly loopback: string;
  readonly ownAddress: string;
  readonly loopback6: string;
  readonly outside: string;
  readonly unaccepted: string;
}

export interface TalkingSandbox {
  readonly slot: Slot;
  talk(): Promise<Talk>;
  /** Makes the slow readers read. */
  go(): Promise<void>;
  /** Text of a file in the sandbox; empty while there is none. */
  read(name: string): Promise<string>;
  freeze(): Promise<void>;
  thaw(): void;
  /** Locks its network as CRIU does in a dump. */
  leaveLocked(): Promise<void>;
  /** Names of the tables of nftables in its network namespace. */
  tables(): Promise<string>;
  /** Dumps the frozen sandbox, which stays frozen. Resolves to the directory of the images. */
  dump(): Promise<string>;
}

export interface TalkHost {
  readonly connections: Connections;
  /** Sockets of the outside, one for each sandbox that was started, in order. */
  readonly peers: readonly Socket[];
  start(settings?: Settings): Promise<TalkingSandbox>;
  /** Starts a copy in a slot of its own. `inside` is undefined for images of an earlier version. */
  restore(images: string, inside: Inside | undefined): Promise<TalkingSandbox>;
  close(): Promise<void>;
}

export async function talkHost(): Promise<TalkHost> {
  const work = await mkdtemp(join(tmpdir(), "svc-talk-"));
  const plan = planNetwork(NETWORK, `10.${OWN === "" ? 212 : 244 + Number(OWN)}.254.0/24`);
  const links = hostLinks(plan, runCommand);
  const annotations = hostAnnotations(RUN_DIRECTORY);
  const connections = hostConnections(plan, runCommand);
  // Removes the leftovers of a run that was killed.
  for (const number of await links.list()) await links.remove(plan.slot(number));
  await links.prepare();
  await run("cc", ["-static", "-O1", "-Wall", "-Wextra", "-o", join(work, "talk"), join(HERE, "talk.c")]);
  const peers: Socket[] = [];
  const server = createServer((peer) => {
    peer.on("error", () => undefined).resume();
    peers.push(peer);
  });
  await once(server.listen(0, plan.gateway), "listening");
  const { port } = server.address() as AddressInfo;
  const undo: (() => Promise<unknown>)[] = [];

  const make = async (name: string, args: readonly string[], root?: string) => {
    const slot = plan.slot(undo.length + 2);
    const id = `${NETWORK}-${name}-${process.pid}`;
    const at = (path: string) => join(work, id, path);
    for (const path of ["root", "bundle", "images", "state"]) await mkdir(at(path), { recursive: true });
    if (root === undefined) {
      for (const path of ["proc", "dev", "sys", "etc"]) await mkdir(at(`root/${path}`));
      await writeFile(at("root/etc/hosts"), "");
      await cp(join(work, "talk"), at("root/talk"));
    } else await run("cp", ["-a", `${root}/.`, at("root")]);
    await writeFile(at("hosts"), "127.0.0.1 localhost\n");
    const network = slot.netnsPath;
    const config = JSON.parse(containerConfig({ id, root: at("root"), args, network, hosts: at("hosts") })) as {
      annotations?: object;
      linux: { namespaces: { type: string; path?: string }[] };
    };
    // svc-runc adds these, as it does for Docker.
    delete config.annotations;
    for (const namespace of config.linux.namespaces) delete namespace.path;
    await writeFile(at("bundle/config.json"), JSON.stringify(config));
    await links.add(slot);
    const runc = async (runtime: string, ...parameters: string[]) => {
      const log = at("runc.log");
      const child = spawn(runtime, ["--root", at("state"), "--log", log, ...parameters], {
        stdio: "ignore",
        env: { PATH: INSTALLED },
      });
      const [code] = (await once(child, "exit")) as [number | null];
      if (code !== 0) throw new Error(`${parameters[0]} ended with ${code}: ${await readFile(log, "utf8")}`);
    };
    undo.push(async () => {
      await runc("runc", "delete", "--force", id);
      await annotations.remove(id);
      await links.remove(slot);
    });
    const read = (path: string) => readFile(at(`root/${path}`), "utf8").catch(() => "");
    const cgroup = async () => openCgroup(Number(await readFile(at("pid"), "utf8")), id);
    const state = { group: undefined as Awaited<ReturnType<typeof cgroup>> | undefined, settings: "" };
    const sandbox: TalkingSandbox = {
      slot,
      read,
      async talk() {
        const [round = "0", loopback = "", ownAddress = "", loopback6 = "", outside = "", unaccepted = ""] = (
          await read("state")
        ).split("|");
        return { round: Number(round), loopback, ownAddress, loopback6, outside, unaccepted };
      },
      go: () => writeFile(at("root/go"), ""),
      async freeze() {
        state.group = await cgroup();
        await state.group.freeze();
      },
      thaw: () => state.group?.thaw(),
      async leaveLocked() {
        const lock =
          "table inet CRIU-5b1fb4b0-7b47-4 { chain output { type filter hook output priority 0; policy drop; }; }";
        await run("nsenter", [`--net=${slot.netnsPath}`, "nft", lock]);
      },
      tables: async () => (await run("nsenter", [`--net=${slot.netnsPath}`, "nft", "list", "tables"])).stdout,
      async dump() {
        const images = at("images");
        // The settings are in a directory that CRIU sees in a dump: that of its log.
        const where = ["--image-path", images, "--work-path", state.settings];
        await runc("runc", "checkpoint", "--leave-running", ...where, id);
        return images;
      },
    };
    const create = async (settings: string) => {
      state.settings = settings;
      const runtime = await runtimeWith(settings);
      await runc(runtime, "create", "--bundle", at("bundle"), "--pid-file", at("pid"), id);
      await runc(runtime, "start", id);
    };
    return { id, at, create, sandbox, slot };
  };

  /** @param images the directory of images that CRIU sees, which gets the settings too */
  const runtimeWith = async (images: string) => {
    const settings = await readFile(join(SCRIPTS, "criu/connections.conf"), "utf8");
    await writeFile(join(images, "connections.conf"), settings);
    await writeFile(
      join(images, "runc.conf"),
      settings.replace("tcp-established", "tcp-close").replace("network-lock nftables", "network-lock skip"),
    );
    const text = await readFile(join(SCRIPTS, "runtime/svc-runc"), "utf8");
    const runtime = join(work, "svc-runc");
    await writeFile(runtime, text.replaceAll("/opt/svc/criu/", `${images}/`));
    await chmod(runtime, 0o755);
    return runtime;
  };

  return {
    connections,
    peers,
    async start(settings = "connections") {
      const number = undo.length;
      const address = plan.slot(number + 2).address;
      const made = await make(`source${number}`, ["/talk", address, plan.gateway, String(port)]);
      await annotations.joinNetwork(made.id, made.slot.netnsPath, settings === "connections");
      await made.create(made.at("images"));
      return made.sandbox;
    },
    async restore(images, inside) {
      const root = join(images, "../root");
      const made = await make(`copy${undo.length}`, ["/talk"], root);
      await annotations.joinNetwork(made.id, made.slot.netnsPath, inside !== undefined);
      await annotations.restore(made.id, images);
      if (inside !== undefined) await connections.prepare(made.slot, inside);
      await made.create(images);
      if (inside !== undefined) await connections.release(made.slot, inside);
      return made.sandbox;
    },
    async close() {
      for (const one of undo) await one();
      for (const peer of peers) peer.destroy();
      server.close();
      await run("ip", ["link", "delete", plan.gatewayLink]);
      await rm(work, { recursive: true, force: true });
      await rm(RUN_DIRECTORY, { recursive: true, force: true });
    },
  };
}
