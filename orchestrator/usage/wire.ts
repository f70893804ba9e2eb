/** Constructs the metering of projects and the handlers that show it. */

import { loop } from "../../shared/program/loop.ts";
import type { Base } from "../base/base.ts";
import type { Store } from "../store/store.ts";
import { FINEST } from "../store/usage/steps.ts";
import type { ProjectSample } from "../store/usage/usage.ts";
import { createUsageHandlers } from "./handlers.ts";
import { createMeter } from "./meter.ts";
import { createSampling } from "./sampling.ts";

const EVERY_MS = FINEST * 1000;

interface UsageDeps {
  readonly store: Store;
  readonly metrics: { used(samples: readonly ProjectSample[]): void };
}

export function startUsage({ now, log, teardown }: Base, { store, metrics }: UsageDeps) {
  const meter = createMeter(now);
  const sample = createSampling({ store: store.usage, meter, now, observe: (samples) => metrics.used(samples) });
  const sampling = loop({ name: "usage of projects", everyMs: EVERY_MS, log }, sample);
  teardown.add("usage of projects", () => sampling.stop());
  return { meter, handlers: createUsageHandlers({ store: store.usage, now }) };
}
