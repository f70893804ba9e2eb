/** Gathers the evidence of one machine. Each part has its own limit of time, and a part that fails leaves the others. */

import { withDeadline } from "../base/deadline.ts";
import type { Machine } from "../base/this-machine.ts";
import { readCertificates } from "./certificates.ts";
import { tryCriu } from "./criu.ts";
import { lookAtDatabase } from "./database.ts";
import { askDocker, versionsOf } from "./docker.ts";
import { tryEgress } from "./egress.ts";
import type { Evidence } from "./evidence.ts";
import { lookAtFiles } from "./files.ts";
import { lookAtFirewall } from "./firewall.ts";
import { readClock, readDisks, readKernel, readMachine } from "./machine.ts";
import { askNameServers } from "./name-servers.ts";
import { listLeftovers, listObjects } from "./objects.ts";
import { askPlatform } from "./platform.ts";
import { readMetrics } from "./programs/metrics.ts";
import { listPorts } from "./programs/ports.ts";
import { lookAtPrograms } from "./programs/programs.ts";
import { lookAtSite } from "./site.ts";

const PART_LIMIT_MS = 20_000;
/** Something may be under way at the first look. What is broken at both, is broken. */
const AGAIN_MS = 4_000;

export async function gather(machine: Machine): Promise<Evidence> {
  const { instance, now } = machine;
  const part = <T>(look: () => Promise<T>): Promise<T | undefined> =>
    withDeadline(look(), PART_LIMIT_MS).catch(() => undefined);
  const [of, kernel, disks, files, clock, docker, versions, dns, ports, certificates, programs] = await Promise.all([
    part(() => readMachine(machine)),
    part(() => readKernel()),
    part(() => readDisks(machine)),
    part(() => lookAtFiles(machine)),
    part(() => readClock(machine)),
    part(() => askDocker(machine)),
    part(() => versionsOf(machine)),
    part(() => askNameServers(machine)),
    part(() => listPorts(machine)),
    part(() => readCertificates(machine)),
    part(() => lookAtPrograms(machine)),
  ]);
  const [firewall, database, platform, metrics, egress, site] = await Promise.all([
    part(() => lookAtFirewall(machine)),
    part(() => lookAtDatabase(machine, programs)),
    part(() => askPlatform(machine)),
    part(() => readMetrics(machine)),
    part(() => tryEgress(machine)),
    part(() => lookAtSite(machine)),
  ]);
  return {
    at: now(),
    instance,
    machine: of,
    kernel,
    disks,
    files,
    clock,
    docker,
    versions,
    // Alone: a busy machine must not look like one that cannot dump.
    criu: await part(() => tryCriu(machine)),
    firewall,
    dns,
    ports,
    certificates,
    site,
    database,
    programs,
    metrics,
    nodes: platform?.nodes,
    records: platform?.records,
    objects: docker?.problem === undefined ? await part(() => listObjects(machine)) : undefined,
    leftovers: await part(() => listLeftovers(machine)),
    egress,
  };
}

const UNSEEN: Omit<Evidence, "at" | "instance"> = {
  machine: undefined,
  kernel: undefined,
  disks: undefined,
  files: undefined,
  clock: undefined,
  docker: undefined,
  versions: undefined,
  criu: undefined,
  firewall: undefined,
  dns: undefined,
  ports: undefined,
  certificates: undefined,
  site: undefined,
  database: undefined,
  programs: undefined,
  metrics: undefined,
  nodes: undefined,
  objects: undefined,
  records: undefined,
  leftovers: undefined,
  egress: undefined,
};

/** What programs need to be replaced and to start again, in a few seconds: no sandbox and no process is touched for it. */
export async function gatherForUpgrade(machine: Machine): Promise<Evidence> {
  const part = <T>(look: () => Promise<T>) => withDeadline(look(), PART_LIMIT_MS).catch(() => undefined);
  const [of, disks, files, clock, docker, programs] = await Promise.all([
    part(() => readMachine(machine)),
    part(() => readDisks(machine)),
    part(() => lookAtFiles(machine)),
    part(() => readClock(machine)),
    part(() => askDocker(machine)),
    part(() => lookAtPrograms(machine)),
  ]);
  const database = await part(() => lookAtDatabase(machine, programs));
  const seen = { machine: of, disks, files, clock, docker, programs, database };
  return { ...UNSEEN, ...seen, at: machine.now(), instance: machine.instance };
}

/** Time for what is under way at the first look to end. */
export async function untilAgain(): Promise<void> {
  await new Promise((resolve) => void setTimeout(resolve, AGAIN_MS));
}

/** The parts in which something may be under way, once more. */
export async function gatherAgain(machine: Machine, first: Evidence): Promise<Evidence> {
  await untilAgain();
  const part = <T>(look: () => Promise<T>) => withDeadline(look(), PART_LIMIT_MS).catch(() => undefined);
  const [programs, metrics, ports, platform, firewall, leftovers] = await Promise.all([
    part(() => lookAtPrograms(machine)),
    part(() => readMetrics(machine)),
    part(() => listPorts(machine)),
    part(() => askPlatform(machine)),
    part(() => lookAtFirewall(machine)),
    part(() => listLeftovers(machine)),
  ]);
  const objects = first.objects === undefined ? undefined : await part(() => listObjects(machine));
  const { nodes, records } = platform ?? {};
  const again = { programs, metrics, ports, nodes, records, firewall, leftovers, objects };
  return { ...first, ...again, metricsBefore: first.metrics, at: machine.now() };
}
