/** Checks of work that fails or is late, by what the running programs count: each is that of an alert. Pure. */

import type { Evidence, MetricsSeen, Sample } from "../evidence/evidence.ts";
import type { Check } from "./check.ts";

/** As the alerts have them (docs/operating/prometheus/svc.rules.yml), which look at minutes where these see all since a start. */
const FEW_FAILURES = 5;
const SHARE_OF_FAILURES = 0.05;
const SLOW_CREATE_S = 1;
/** Of fewer creates one in a hundred says nothing. */
const MANY_CREATES = 100;
const MANY_DELIVERIES = 1_000;
const LATE_LOOP_S = 0.5;

const CREATES = "svc_sandbox_create_duration_seconds";

export const workChecks: readonly Check[] = [
  {
    id: "programs.slow",
    section: "programs",
    severity: "warns",
    problem: "a program of the platform answers late: it has more work than one processor does",
    evidence: ({ metrics }) =>
      metrics?.flatMap(({ program, samples }) =>
        of(samples, "nodejs_eventloop_lag_p99_seconds")
          .filter(({ value }) => value > LATE_LOOP_S)
          .map(({ value }) => `${program}: one turn of a hundred waits ${value.toFixed(1)} s`),
      ),
    fix: "fewer sandboxes on the node (SVC_MAX_SANDBOXES), a second node, or edge programs of their own: docs/operating/edges.md",
  },
  {
    id: "creates.failing",
    section: "programs",
    severity: "warns",
    problem: "more than 5 % of the creates since the start of the orchestrator have failed",
    evidence: (evidence) => {
      const samples = samplesOf(evidence, "orchestrator");
      if (samples === undefined) return evidence.metrics && [];
      const failed = of(samples, "svc_sandbox_create_failures_total").filter(({ value }) => value > 0);
      const failures = sum(failed);
      const all = failures + sum(of(samples, `${CREATES}_count`));
      if (failures <= FEW_FAILURES || failures <= SHARE_OF_FAILURES * all) return [];
      const codes = failed
        .toSorted((a, b) => b.value - a.value)
        .map(({ labels, value }) => `${value} ${labels["code"] ?? ""}`);
      return [`${failures} of ${all}: ${codes.join(", ")}`];
    },
    fix: "cluster_at_capacity and no_space need room or another node; of others ./scripts/service log agent has the reason",
  },
  {
    id: "creates.slow",
    section: "programs",
    severity: "warns",
    problem: "creates take long, although a warm container was there",
    evidence: (evidence) => {
      const samples = samplesOf(evidence, "orchestrator");
      if (samples === undefined) return evidence.metrics && [];
      const within = of(samples, `${CREATES}_bucket`).filter(({ labels }) => labels["path"] === "warm");
      const atMost = (le: string) => sum(within.filter(({ labels }) => labels["le"] === le));
      const all = atMost("+Inf");
      const late = all - atMost(String(SLOW_CREATE_S));
      if (all < MANY_CREATES || late <= all / 100) return [];
      return [`${late} of ${all} since the start of the orchestrator took more than ${SLOW_CREATE_S} s`];
    },
    fix: "SVC_SERVER_TIMING=on shows where the time goes: docs/operating/metrics.md",
  },
  {
    id: "pool.short",
    section: "programs",
    severity: "warns",
    problem: "warm containers are missing, and none was added while this was looked at",
    evidence: ({ metrics, metricsBefore }) =>
      metrics?.flatMap(({ program, samples }) =>
        of(samples, "svc_pool_size")
          .filter(({ labels }) => labels["state"] === "wanted")
          .flatMap(({ labels: { build = "" }, value: wanted }) => {
            const ready = readyOf(samples, build);
            const before = metricsBefore?.find((one) => one.program === program);
            const grows = before !== undefined && ready > readyOf(before.samples, build);
            return ready >= wanted || grows ? [] : [`build ${build}: ${ready} of ${wanted}`];
          }),
      ),
    fix: "./scripts/service log agent says why one could not be made; creates are slower meanwhile",
  },
  {
    id: "webhooks.waiting",
    section: "programs",
    severity: "warns",
    problem: "many deliveries to webhooks wait",
    evidence: ({ metrics }) =>
      metrics?.flatMap(({ samples }) =>
        of(samples, "svc_webhook_queue")
          .filter(({ value }) => value > MANY_DELIVERIES)
          .map(({ value }) => `${value} have not ended`),
      ),
    fix: "`svc webhook list` shows which URL fails; `svc webhook set NAME --disable` ends its deliveries",
  },
];

function samplesOf({ metrics }: Evidence, program: MetricsSeen["program"]): readonly Sample[] | undefined {
  return metrics?.find((one) => one.program === program)?.samples;
}

function of(samples: readonly Sample[], name: string): readonly Sample[] {
  return samples.filter((sample) => sample.name === name);
}

function sum(samples: readonly Sample[]): number {
  return samples.reduce((all, { value }) => all + value, 0);
}

function readyOf(samples: readonly Sample[], build: string): number {
  return sum(
    of(samples, "svc_pool_size").filter(({ labels }) => labels["build"] === build && labels["state"] === "ready"),
  );
}
