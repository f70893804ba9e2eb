/** Prometheus metrics of the orchestrator. The only importer of prom-client here; no label holds a sandbox id. */

import type { FastifyInstance } from "fastify";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { COMMIT, VERSION } from "../../shared/version.ts";
import type { Store } from "../store/store.ts";
import type { ProjectSample } from "../store/usage/usage.ts";
import { type NodeMetrics, type NodeSources, nodeMetrics } from "./node-gauges.ts";
import { type CertificateEnds, machineGauges, type ShownSite, siteGauges } from "./site-gauges.ts";
import { type StateChangeMetrics, stateChangeMetrics } from "./state-changes.ts";

export interface Metrics extends StateChangeMetrics, NodeMetrics {
  readonly contentType: string;
  text(): Promise<string>;
  created(outcome: { readonly warm: boolean; readonly seconds: number } | { readonly failed: string }): void;
  ended(reason: string): void;
  expiryLag(seconds: number): void;
  repaired(kind: string, count: number): void;
  limited(group: string): void;
  built(result: "ready" | "error", seconds: number): void;
  /** What projects used in the last seconds. */
  used(samples: readonly ProjectSample[]): void;
  /** One attempt to deliver an event to a webhook. */
  sent(result: "delivered" | "retry" | "failed"): void;
  /** What the last comparison of a node's volumes with the records found; undefined: the node was removed. */
  volumeProblems(node: string, counts: Readonly<Record<"unknown" | "missing", number>> | undefined): void;
  /** Measures the duration of each answered request of a server. */
  watch(server: FastifyInstance): void;
}

/** What is counted when the metrics are asked for. */
export interface MetricsSources extends NodeSources {
  readonly store: Store;
  /** The certificate that clients on other machines see; undefined: there is none. */
  readonly site?: ShownSite | undefined;
  /** The certificates between machines; undefined: the platform has no port for nodes. */
  readonly certificates?: (() => CertificateEnds) | undefined;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export function createMetrics(sources: MetricsSources): Metrics {
  const { store } = sources;
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: "svc_build_info",
    help: "Version and commit",
    labelNames: ["version", "commit", "component"],
    registers,
  }).set({ version: VERSION, commit: COMMIT, component: "orchestrator" }, 1);
  const create = new Histogram({
    name: "svc_sandbox_create_duration_seconds",
    help: "Time from the valid create request to the running sandbox",
    labelNames: ["path", "result"],
    buckets: SECONDS,
    registers,
  });
  const failures = new Counter({
    name: "svc_sandbox_create_failures_total",
    help: "Creates that failed, by error code",
    labelNames: ["code"],
    registers,
  });
  const evictions = new Counter({
    name: "svc_evictions_total",
    help: "Sandboxes that ended, by reason",
    labelNames: ["reason"],
    registers,
  });
  const builds = new Histogram({
    name: "svc_template_build_duration_seconds",
    help: "Time from the start of a template build to its end, time in the queue included",
    labelNames: ["result"],
    buckets: [0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600],
    registers,
  });
  const lag = new Histogram({
    name: "svc_expiry_lag_seconds",
    help: "Delay between the timeout of a sandbox and its kill or pause",
    buckets: SECONDS,
    registers,
  });
  const repairs = new Counter({
    name: "svc_reconcile_repairs_total",
    help: "Differences between records and nodes that were repaired",
    labelNames: ["kind"],
    registers,
  });
  const runs = new Counter({ name: "svc_reconcile_runs_total", help: "Comparisons of records and nodes", registers });
  const rejections = new Counter({
    name: "svc_ratelimit_rejections_total",
    help: "Requests that a rate limit refused with 429",
    labelNames: ["route"],
    registers,
  });
  const requests = new Histogram({
    name: "svc_http_request_duration_seconds",
    help: "Duration of requests of the platform API",
    labelNames: ["route", "method", "code"],
    buckets: SECONDS,
    registers,
  });
  registry.registerMetric(
    new Gauge({
      name: "svc_template_builds",
      help: "Builds of templates by status",
      labelNames: ["status"],
      registers: [],
      async collect() {
        this.reset();
        for (const [status, count] of await store.builds.countByStatus()) this.set({ status }, count);
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: "svc_sandboxes",
      help: "Sandboxes by state",
      labelNames: ["state"],
      registers: [],
      async collect() {
        this.reset();
        for (const [state, count] of await store.sandboxes.countByState()) this.set({ state }, count);
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: "svc_audit_last_seq",
      help: "Number of the last entry of the audit log, which never decreases",
      registers: [],
      async collect() {
        this.set((await store.audit.head()).seq);
      },
    }),
  );
  const ofNodes = nodeMetrics(registers, sources);
  if (sources.site !== undefined) siteGauges(registers, sources.site);
  if (sources.certificates !== undefined) machineGauges(registers, sources.certificates);
  const projects = projectUse(registers);
  const webhooks = webhookMetrics(registers, sources);
  const volumes = volumeMetrics(registers, sources);

  return {
    ...webhooks,
    ...ofNodes,
    ...stateChangeMetrics(registers),
    volumeProblems: volumes.problems,
    contentType: registry.contentType,
    text: () => registry.metrics(),
    created(outcome) {
      if ("failed" in outcome) failures.inc({ code: outcome.failed });
      else create.observe({ path: outcome.warm ? "warm" : "cold", result: "ok" }, outcome.seconds);
    },
    ended: (reason) => evictions.inc({ reason }),
    expiryLag: (seconds) => lag.observe(Math.max(0, seconds)),
    repaired(kind, count) {
      if (kind === "stop") runs.inc();
      repairs.inc({ kind }, count);
    },
    built: (result, seconds) => builds.observe({ result }, seconds),
    used: (samples) => projects(samples),
    limited: (route) => rejections.inc({ route }),
    watch(server) {
      server.addHook("onResponse", (request, reply, done) => {
        // The route's pattern, not the path: paths would make one label per sandbox.
        const route = request.routeOptions.url ?? "unknown";
        if (route.startsWith("/volumecontent/")) volumes.answered(reply.statusCode);
        requests.observe({ route, method: request.method, code: reply.statusCode }, reply.elapsedTime / 1000);
        done();
      });
    },
  };
}

function webhookMetrics(registers: Registry[], { store }: MetricsSources): Pick<Metrics, "sent"> {
  const sent = new Counter({
    name: "svc_webhook_deliveries_total",
    help: "Attempts to deliver events to webhooks, by result; retry: failed, and tried again later",
    labelNames: ["result"],
    registers,
  });
  const queue = new Gauge({
    name: "svc_webhook_queue",
    help: "Deliveries to webhooks that have not ended",
    registers,
    async collect() {
      this.set(await store.deliveries.countPending());
    },
  });
  queue.set(0);
  return { sent: (result) => sent.inc({ result }) };
}

function volumeMetrics(registers: Registry[], { store }: MetricsSources) {
  const byState = (name: string, help: string, read: (of: { count: number; sizeMb: number }) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ["state"],
      registers,
      async collect() {
        this.reset();
        for (const [state, of] of await store.volumes.countByState()) this.set({ state }, read(of));
      },
    });
  byState("svc_volumes", "Volumes by state", ({ count }) => count);
  byState("svc_volume_size_bytes", "Sizes of the volumes by state", ({ sizeMb }) => sizeMb * 1024 ** 2);
  const problems = new Gauge({
    name: "svc_volume_problems",
    help: "Volumes of a node that no record names (unknown), and that a record names and the node does not have (missing)",
    labelNames: ["node", "kind"],
    registers,
  });
  const answers = new Counter({
    name: "svc_volume_content_requests_total",
    help: "Requests for the content of volumes, by class of their status",
    labelNames: ["class"],
    registers,
  });
  return {
    problems: (node: string, counts: Readonly<Record<"unknown" | "missing", number>> | undefined) => {
      if (counts === undefined) for (const kind of ["unknown", "missing"]) problems.remove({ node, kind });
      else for (const [kind, count] of Object.entries(counts)) problems.set({ node, kind }, count);
    },
    answered: (status: number) => answers.inc({ class: `${Math.floor(status / 100)}xx` }),
  };
}

/** Projects with labels of their own: the first ones since the start. All others share the label `other`. */
const LABELLED_PROJECTS = 200;

function projectUse(registers: Registry[]): (samples: readonly ProjectSample[]) => void {
  const labelNames = ["project"];
  const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames, registers });
  const counter = (name: string, help: string, more: string[] = []) =>
    new Counter({ name, help, labelNames: [...labelNames, ...more], registers });
  const sandboxes = gauge("svc_project_sandboxes", "Running sandboxes of a project");
  const memory = gauge("svc_project_memory_bytes", "Memory that the sandboxes of a project use");
  const disk = gauge("svc_project_disk_bytes", "Disk that the running sandboxes of a project use");
  const starts = counter("svc_project_sandbox_starts_total", "Sandboxes of a project that were created or resumed");
  const cpu = counter("svc_project_cpu_seconds_total", "Processor time of the sandboxes of a project");
  const traffic = counter("svc_project_traffic_bytes_total", "Traffic of the sandboxes of a project", ["direction"]);
  const labelled = new Set<string>();
  const labelOf = (publicId: string) => {
    if (labelled.size < LABELLED_PROJECTS) labelled.add(publicId);
    return labelled.has(publicId) ? publicId : "other";
  };
  return (samples) => {
    for (const metric of [sandboxes, memory, disk]) metric.reset();
    for (const { publicId, sample } of samples) {
      const project = labelOf(publicId);
      sandboxes.inc({ project }, sample.sandboxes);
      memory.inc({ project }, sample.memoryBytes);
      disk.inc({ project }, sample.diskBytes);
      starts.inc({ project }, sample.starts);
      cpu.inc({ project }, sample.cpuMs / 1000);
      traffic.inc({ project, direction: "sent" }, sample.sentBytes);
      traffic.inc({ project, direction: "received" }, sample.receivedBytes);
    }
  };
}
