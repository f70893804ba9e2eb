/** What the running programs count, as Prometheus sees it: the numbers that alerts look at. */

import { ask } from "../../base/http.ts";
import type { Instance, Program } from "../../base/instance.ts";
import type { Machine } from "../../base/this-machine.ts";
import type { MetricsSeen, Sample } from "../evidence.ts";
import { urlOf } from "./programs.ts";

/** Others are not kept: a busy node has thousands of series. */
const NEEDED: ReadonlySet<string> = new Set([
  "nodejs_eventloop_lag_p99_seconds",
  "svc_disks_fetched",
  "svc_pool_size",
  "svc_sandbox_create_duration_seconds_bucket",
  "svc_sandbox_create_duration_seconds_count",
  "svc_sandbox_create_failures_total",
  "svc_webhook_queue",
]);

/** Of each program of this machine that answers. */
export async function readMetrics({ instance }: Machine): Promise<readonly MetricsSeen[]> {
  const read = async (program: Program): Promise<readonly MetricsSeen[]> => {
    const headers = { authorization: `Bearer ${metricsTokenOf(instance, program)}` };
    const answer = await ask({ url: `${urlOf(instance, program)}/metrics`, headers }).catch(() => undefined);
    return answer?.status === 200 ? [{ program, samples: samplesIn(answer.text) }] : [];
  };
  return (await Promise.all(instance.programs.map(read))).flat();
}

export function metricsTokenOf(instance: Instance, program: Program): string {
  return instance.setting(program, "SVC_METRICS_TOKEN") ?? instance.setting(program, "SVC_ORCHESTRATOR_TOKEN") ?? "";
}

/** The samples that checks need. Pure. @param text in Prometheus' form */
export function samplesIn(text: string): readonly Sample[] {
  return text.split("\n").flatMap((line) => {
    const [, name = "", labels = "", value = ""] = /^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (!NEEDED.has(name)) return [];
    const pairs = [...labels.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = "", said = ""]) => [key, said]);
    return [{ name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }];
  });
}
