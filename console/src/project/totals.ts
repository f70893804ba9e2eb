/** What a project used in a time as sums: what the time has cost. Pure. */

import type { Static } from "typebox";
import type { teamMetricsApi } from "../../../shared/api/teams.ts";
import { bytes } from "../base/format.ts";

/** The longest time that one sample is of: a longer one between two samples is a gap. */
const LONGEST_S = 900;

type Metric = Static<(typeof teamMetricsApi.teamMetrics)["reply"]>[number];

/**
 * In words. Undefined: of one sample alone it is not known how long it is.
 * @param samples the oldest first; all of one length, with gaps where the platform did not run
 */
export function totalsOf(samples: readonly Metric[]): string | undefined {
  const times = samples.map(({ timestampUnix }) => timestampUnix);
  const seconds = times.slice(1).reduce((least, at, index) => Math.min(least, at - (times[index] ?? at)), LONGEST_S);
  if (times.length < 2 || seconds <= 0) return undefined;
  const sum = (of: (sample: Metric) => number) => samples.reduce((all, sample) => all + of(sample), 0);
  const hours = (of: (sample: Metric) => number) => ((sum(of) * seconds) / 3_600).toFixed(2);
  const [sent, received] = [sum(({ bytesSent }) => bytesSent), sum(({ bytesReceived }) => bytesReceived)];
  return [
    // A rate is of thousandths: only the starts of one sample can be told from it.
    `${sum(({ sandboxStartRate }) => Math.round(sandboxStartRate * seconds))} starts`,
    `${hours(({ cpuUsed }) => cpuUsed)} processor hours`,
    // Samples have the most of their time.
    `at most ${hours(({ memUsed }) => memUsed / 2 ** 30)} GiB hours of memory`,
    `${bytes(sent)} sent`,
    `${bytes(received)} received`,
  ].join(", ");
}
