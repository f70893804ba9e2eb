/**
 * A machine in memory: Docker, links, firewall, annotations, cgroups and envd, with faults. Its content outlives the agent
 * that made it, so a test can let one agent vanish and see how the next one treats the rest.
 */

import type { BuildMachine } from "../../../agent/builds/machine.ts";
import type { Annotations } from "../../../agent/containers/annotations.ts";
import type { Cgroup } from "../../../agent/containers/cgroup/cgroup.ts";
import { dockerLimits } from "../../../agent/containers/cgroup/limits.ts";
import type { ContainerEvent, Containers } from "../../../agent/containers/containers.ts";
import type { Envd, EnvdInit } from "../../../agent/containers/envd.ts";
import type { SandboxEgress } from "../../../agent/egress/channel/messages.ts";
import type { EgressProcess } from "../../../agent/egress-supervisor/process.ts";
import { type Plan, planNetwork } from "../../../agent/network/addresses.ts";
import type { SlotPolicy } from "../../../agent/network/firewall-rules.ts";
import type { Links } from "../../../agent/network/links.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { type FakeBuilds, fakeBuilds } from "./fake-builds.ts";
import { type FakeCompany, fakeCompany } from "./fake-company.ts";
import { type FakeContainer, newContainer, sizeOf } from "./fake-container.ts";
import { fakeDisks, fakeFacts, fakeMachine, noVolumes } from "./fake-machine.ts";
import { fakeNetwork } from "./fake-network.ts";
import { fakeSnapshots } from "./fake-snapshots.ts";
import { noBlobs } from "./no-blobs.ts";

/** No start begins before its memory is there. */
const done = () => Promise.resolve();
const NO_WAITING = { awaitMemory: done, waitsForMemory: done, callOff: done, wasRestored: () => Promise.resolve(true) };

/** Every operation calls this first with its name: throw to fail the operation, wait to delay it. */
type Fault = (step: string) => unknown;

export interface FakeEngine {
  readonly plan: Plan;
  readonly containers: ReadonlyMap<string, FakeContainer>;
  readonly slots: ReadonlySet<number>;
  readonly annotations: ReadonlyMap<string, string>;
  readonly firewall: ReadonlyMap<string, SlotPolicy>;
  /** The sandboxes that the egress process knows, by address. */
  readonly egress: ReadonlyMap<string, SandboxEgress>;
  readonly builds: FakeBuilds;
  readonly company: FakeCompany;
  /** The names of all operations, in order. */
  readonly steps: readonly string[];
  /** A sandbox's answer to a request for its logs. */
  logs: unknown;
  freeMemory: number;
  readonly mounts: Map<string, readonly { readonly source: string; readonly path: string }[]>;
  fail(fault: Fault): void;
  /** As if Docker's answer to its create had been lost. */
  forget(id: string): void;
  /** Ends the container's first process, as if by itself. */
  die(id: string, exit?: { code?: number; oom?: boolean }): void;
  /** The egress process that each agent starts. */
  readonly egressProcess: EgressProcess;
  machine(): BuildMachine;
}

export function fakeEngine(runtime = "/runtime/1"): FakeEngine {
  const plan = planNetwork("t", "10.99.0.0/24");
  const containers = new Map<string, FakeContainer>();
  const slots = new Set<number>();
  const [annotations, restores] = [new Map<string, string>(), new Map<string, string>()];
  const mounts: FakeEngine["mounts"] = new Map();
  const [steps, images, company] = [[] as string[], new Set<string>(), fakeCompany()];
  const listeners = new Set<(event: ContainerEvent) => void>();
  const made = new Set<string>();
  const exits = new Map<string, { exitCode: number; oomKilled: boolean }>();
  const state = { fault: (() => undefined) as Fault, pid: 1_000, logs: { entries: [] } as unknown, free: 2 ** 34 };

  const step = async (name: string) => {
    steps.push(name);
    await state.fault(name);
  };
  const stored = fakeSnapshots(step, images);
  const built = fakeBuilds({
    step,
    imageOf: (id) => known(id).spec.build.image,
    at: (address) => runningAt(address).id,
    inUse: () => [...containers.values()].map(({ spec }) => spec.build.image),
  });
  const known = (id: string): FakeContainer => {
    const container = containers.get(id);
    if (container === undefined) throw new AppError("internal", "no such container");
    return container;
  };
  const end = (container: FakeContainer, exitCode: number, oomKilled: boolean) => {
    if (!container.running) return;
    Object.assign(container, { running: false, pid: 0 });
    exits.set(container.id, { exitCode, oomKilled });
    for (const listener of listeners) listener({ kind: "died", id: container.id, exitCode });
  };

  const engine: Containers = {
    async create(spec) {
      await step("create");
      const id = `c${containers.size}-${steps.length}`;
      containers.set(id, newContainer(id, spec));
      made.add(id);
      return id;
    },
    isMade: (id) => made.has(id),
    async start(id) {
      await step("start");
      const container = known(id);
      if (!annotations.has(id)) throw new Error("a container was started without its network");
      const memory = restores.get(id);
      restores.delete(id);
      if (memory !== undefined && !images.has(memory)) throw new Error("restored from nothing");
      const fresh = { running: true, frozen: false, pid: state.pid++, netns: annotations.get(id) };
      const size = sizeOf(container.limits);
      Object.assign(container, fresh, { size, restored: memory, watches: memory === undefined });
    },
    async inspect(id) {
      await step("inspect");
      const container = containers.get(id);
      if (container === undefined) return undefined;
      const exit = exits.get(id) ?? { exitCode: 0, oomKilled: false };
      const { running, pid, limits } = container;
      return { running, pid, limits, upperDirectory: `/layers/${id}`, cpus: "", ...exit };
    },
    async kill(id) {
      await step("kill");
      const container = containers.get(id);
      if (container !== undefined) end(container, 137, false);
    },
    async remove(id) {
      made.delete(id);
      await step("remove");
      const container = containers.get(id);
      if (container === undefined) return;
      end(container, 137, false);
      containers.delete(id);
    },
    async rename(id, name) {
      await step("rename");
      known(id).name = name;
    },
    chooseCpus: () => undefined,
    async resize(id, size) {
      await step("resize in Docker");
      const container = known(id);
      container.limits = dockerLimits(size);
      if (container.running) container.size = sizeOf(container.limits);
    },
    async list() {
      await step("list");
      return [...containers.values()].map(({ id, name, running }) => ({ id, name, running }));
    },
    async watch(_since, onEvent, signal) {
      listeners.add(onEvent);
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      listeners.delete(onEvent);
    },
    ...stored.images,
    ...built.images,
    facts: () => Promise.resolve(fakeFacts),
  };

  const links: Links = {
    prepare: () => step("prepare"),
    async add({ number }) {
      await step("link");
      if (slots.has(number)) throw new Error(`slot ${number} exists already`);
      slots.add(number);
    },
    async remove({ number }) {
      await step("unlink");
      slots.delete(number);
    },
    list: () => Promise.resolve([...slots]),
  };

  const { rules, told, firewall, egressProcess, startEgress } = fakeNetwork(step);

  const at = (address: string): FakeContainer | undefined =>
    [...containers.values()].find(
      ({ running, netns }) =>
        running && netns !== undefined && plan.slot(Number(netns.split("-").at(-1))).address === address,
    );
  const runningAt = (address: string): FakeContainer => {
    const container = at(address);
    if (container === undefined || container.frozen) throw new AppError("unavailable", "the sandbox did not answer");
    return container;
  };

  const envd: Envd = {
    async ready({ address }) {
      await step("ready");
      runningAt(address);
    },
    async warm({ address }) {
      await step("warm");
      runningAt(address);
    },
    async init({ address }, body) {
      await step("init");
      runningAt(address).init = body;
      company.inits.push(body);
    },
    async trust({ address }, caBundle) {
      runningAt(address).init = { ...(runningAt(address).init as EnvdInit), caBundle };
    },
    async suspendWatches({ address }) {
      await step("suspend");
      runningAt(address).watches = false;
    },
    async resumeWatches({ address }) {
      await step("watch");
      runningAt(address).watches = true;
    },
    async logs({ address }) {
      await step("logs");
      runningAt(address);
      return state.logs;
    },
  };

  const cgroup = (container: FakeContainer, pid: number): Cgroup => ({
    async freeze() {
      await step("freeze");
      container.frozen = true;
    },
    thaw() {
      steps.push("thaw");
      container.frozen = false;
    },
    frozen: () => container.frozen,
    alive: () => container.running && container.pid === pid,
    async kill() {
      await step("signal");
      end(container, 137, false);
    },
    processes: () => [],
    usage() {
      if (!container.running) throw new Error("no cgroup");
      return { cpuUs: container.cpuUs, memory: container.memoryBytes, cache: 1_000, shared: 0 };
    },
    resize(size) {
      steps.push("resize");
      // A fault can throw here, and cannot wait.
      state.fault("resize");
      container.size = size;
    },
    memoryKills: () => 0,
  });

  const fakeAnnotations: Annotations = {
    async joinNetwork(id, path) {
      await step("annotations");
      annotations.set(id, path);
    },
    allowRenames: () => Promise.resolve(),
    async mountVolumes(id, given) {
      await step("volume annotations");
      mounts.set(id, given);
    },
    volumePaths: (id) => Promise.resolve((mounts.get(id) ?? []).map(({ path }) => path)),
    ...NO_WAITING,
    async restore(id, directory, serve) {
      await step("memory annotations");
      await serve?.();
      restores.set(id, directory);
    },
    criuDirectory: (id) => `/annotations/${id}`,
    remove: (id) => step("remove annotations").then(() => void annotations.delete(id)),
    list: () => Promise.resolve([...annotations.keys()]),
  };

  return {
    plan,
    containers,
    slots,
    annotations,
    firewall: rules,
    egress: told,
    builds: built,
    steps,
    get logs() {
      return state.logs;
    },
    set logs(logs) {
      state.logs = logs;
    },
    get freeMemory() {
      return state.free;
    },
    set freeMemory(bytes) {
      state.free = bytes;
    },
    company,
    mounts,
    fail(fault) {
      state.fault = fault;
    },
    forget: (id) => void made.delete(id),
    die: (id, { code = 1, oom = false } = {}) => end(known(id), code, oom),
    egressProcess,
    machine: () => ({
      host: fakeMachine(() => state.free),
      docker: {
        containers: engine,
        annotations: fakeAnnotations,
        openCgroup(pid, id) {
          const container = containers.get(id);
          if (container === undefined || container.pid !== pid) throw new Error("the first process is gone");
          return cgroup(container, pid);
        },
        envd,
        runtime: () => Promise.resolve({ directory: runtime, command: ["/svc/tini"] }),
      },
      network: { plan, links, firewall, traffic: () => ({ sentBytes: 0, receivedBytes: 0 }) },
      egress: { start: startEgress, ...company.egress },
      disks: fakeDisks,
      volumes: noVolumes,
      memory: stored.memory,
      blobs: noBlobs,
      tools: {
        processes: built.processes,
        login: (_access, registry) => Promise.resolve({ username: "u", password: "p", registry }),
      },
    }),
  };
}
