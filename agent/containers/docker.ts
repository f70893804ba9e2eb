/** Containers on Docker. Only this file, docker-images.ts and docker-builds.ts import dockerode. */

import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import Docker from "dockerode";
import { type Static, Type } from "typebox";
import { AppError } from "../../shared/http/errors.ts";
import { check } from "../../shared/http/validate.ts";
import { createKeyedMutex } from "../../shared/program/keyed-mutex.ts";
import { dockerLimits } from "./cgroup/limits.ts";
import type { ContainerEvent, Containers } from "./containers.ts";
import { dockerBuilds } from "./docker-builds.ts";
import { orUndefined, statusOf } from "./docker-errors.ts";
import { dockerImages, type ImageNames } from "./docker-images.ts";
import { once, perImage } from "./images/per-image.ts";
import { NO_OWN_DISKS } from "./no-own-disks.ts";
import { containerOptions, type NodeOptions } from "./options.ts";

/** The slowest call, a start on a loaded machine, takes a few seconds. */
const CALL_LIMIT_MS = 60_000;

export interface DockerOptions extends Omit<NodeOptions, "diskLimit" | "sudo"> {
  readonly socketPath: string;
}

export function dockerContainers(options: DockerOptions): Containers & ImageNames {
  const engine = { socketPath: options.socketPath, version: "v1.41" };
  // Without a limit a hanging daemon would block every start and stop. The stream of events may be silent for any time.
  const docker = new Docker({ ...engine, timeout: CALL_LIMIT_MS });
  const unlimited = new Docker(engine);
  const mine = [`svc.node=${options.nodeId}`];
  const facts = once(() => readFacts(docker));
  // Docker keeps a container that is renamed during its removal, and lists it as `removing` until Docker restarts.
  const mutex = createKeyedMutex();
  const made = new Set<string>();
  const sudo = perImage(async (image) => {
    const { Config } = await docker.getImage(image).inspect();
    return Config.Labels?.["svc.sudo"] !== "false";
  });

  return {
    async create(spec) {
      try {
        const { diskLimit } = await facts();
        const node: NodeOptions = { ...options, diskLimit, sudo: await sudo(spec.build.image) };
        const container = await docker.createContainer(containerOptions(spec, node));
        made.add(container.id);
        return container.id;
      } catch (cause) {
        if (statusOf(cause) === 404)
          throw new AppError("template_not_found", `the node does not have the image ${spec.build.image}`, { cause });
        throw new AppError("sandbox_create_failed", "the container could not be created", { cause });
      }
    },

    isMade: (id) => made.has(id),

    async start(id) {
      try {
        await docker.getContainer(id).start();
      } catch (cause) {
        throw new AppError("sandbox_create_failed", "the container could not be started", { cause });
      }
    },

    async inspect(id) {
      const found = await orUndefined(docker.getContainer(id).inspect(), 404);
      if (found === undefined) return undefined;
      const { Running, Pid, ExitCode, OOMKilled } = found.State;
      const { Memory, MemorySwap, NanoCpus } = found.HostConfig;
      const upper: unknown = (found.GraphDriver?.Data as Record<string, unknown> | undefined)?.["UpperDir"];
      return {
        running: Running,
        pid: Running ? Pid : 0,
        exitCode: ExitCode,
        oomKilled: OOMKilled,
        upperDirectory: typeof upper === "string" ? upper : undefined,
        image: found.Image,
        limits: { Memory: Memory ?? 0, MemorySwap: MemorySwap ?? 0, NanoCpus: NanoCpus ?? 0 },
        cpus: found.HostConfig.CpusetCpus ?? "",
      };
    },

    async kill(id) {
      // 409: the container does not run.
      await orUndefined(docker.getContainer(id).kill({ signal: "SIGKILL" }), 404, 409);
    },

    async remove(id) {
      // The sweep may take the container from now on: it removes what this call fails to remove.
      made.delete(id);
      // 409: its removal is already under way.
      await mutex(id, () => orUndefined(docker.getContainer(id).remove({ force: true, v: true }), 404, 409));
    },

    async rename(id, name) {
      await mutex(id, () => docker.getContainer(id).rename({ name }));
    },

    async resize(id, size) {
      const { cpus } = size;
      const processors = cpus === undefined ? {} : { CpusetCpus: cpus };
      await mutex(id, () => docker.getContainer(id).update({ ...dockerLimits(size), ...processors }));
    },

    chooseCpus: () => undefined,

    async list() {
      const found = await docker.listContainers({ all: true, filters: { label: mine } });
      return found.map(({ Id, Names, State }) => ({
        id: Id,
        name: Names[0]?.slice(1) ?? "",
        running: State === "running",
      }));
    },

    async watch(since, onEvent, signal) {
      const filters = { type: ["container"], event: ["die", "oom", "destroy"], label: mine };
      // Docker expects seconds with a fraction.
      const stream = await events(unlimited, { since: Number((since / 1_000).toFixed(3)), filters });
      const stop = () => stream.destroy();
      signal.addEventListener("abort", stop, { once: true });
      try {
        let rest = "";
        for await (const chunk of stream) {
          const lines = `${rest}${String(chunk)}`.split("\n");
          rest = lines.pop() ?? "";
          for (const event of lines.map(toEvent)) if (event !== undefined) onEvent(event);
        }
        if (!signal.aborted) throw new Error("the Docker daemon ended its event stream");
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        signal.removeEventListener("abort", stop);
        stop();
      }
    },

    ...NO_OWN_DISKS,
    ...dockerImages(docker, unlimited, options.nodeId),
    ...dockerBuilds(docker, unlimited, options.nodeId),
    facts,
  };
}

type EventFilter = { readonly since: number; readonly filters: Readonly<Record<string, string[]>> };

async function events(docker: Docker, { since, filters }: EventFilter): Promise<Readable> {
  const stream: NodeJS.ReadableStream = await docker.getEvents({ since, filters });
  return stream as Readable;
}

const EventLine = Type.Object({
  Action: Type.String(),
  Actor: Type.Object({ ID: Type.String(), Attributes: Type.Optional(Type.Record(Type.String(), Type.Unknown())) }),
});
const eventLine = check(EventLine, "Docker event");

function toEvent(line: string): ContainerEvent | undefined {
  let value: Static<typeof EventLine>;
  try {
    value = eventLine.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
  const exitCode = Number(value.Actor.Attributes?.["exitCode"] ?? Number.NaN);
  const kind = KINDS[value.Action];
  if (kind === undefined) return undefined;
  return { kind, id: value.Actor.ID, exitCode: Number.isInteger(exitCode) ? exitCode : undefined };
}

const KINDS: Readonly<Record<string, ContainerEvent["kind"]>> = { die: "died", oom: "oom", destroy: "removed" };

async function readFacts(docker: Docker) {
  const [info, version] = await Promise.all([docker.info(), docker.version()]);
  const {
    Driver,
    DockerRootDir,
    SecurityOptions = [],
  } = info as {
    Driver: string;
    DockerRootDir: string;
    SecurityOptions?: string[];
  };
  const runc = version.Components?.find(({ Name }) => Name === "runc");
  const diskLimit =
    Driver === "btrfs" || Driver === "zfs" || (Driver === "overlay2" && (await hasProjectQuota(DockerRootDir)));
  return {
    version: version.Version,
    storageDriver: Driver,
    diskLimit,
    diskDetail: diskLimit
      ? "enforced by the storage driver"
      : "reported only: the storage driver cannot limit a writable layer",
    seccomp: SecurityOptions.some((option) => option.includes("seccomp")),
    runcVersion: runc?.Version ?? "unknown",
    dataRoot: DockerRootDir,
    writableRoot: DockerRootDir,
  };
}

// overlay2 can limit the size of a layer only on XFS with project quotas.
async function hasProjectQuota(directory: string): Promise<boolean> {
  const mounts = (await readFile("/proc/self/mounts", "utf8")).split("\n").map((line) => line.split(" "));
  const [, , type, options = ""] = mounts
    .filter(([, point = ""]) => point === "/" || directory === point || directory.startsWith(`${point}/`))
    .reduce((best, mount) => ((mount[1]?.length ?? 0) >= (best[1]?.length ?? 0) ? mount : best), [""]);
  return type === "xfs" && /(^|,)(prjquota|pquota)(,|$)/.test(options);
}
