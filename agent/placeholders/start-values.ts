/** Starts the values of placeholders and the reports of their uses, over connections to the orchestrators of its own. */

import { valueApi } from "../../shared/agent-api/value-shapes.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { connectToAny, type Orchestrators } from "../joining/orchestrators.ts";
import { authorization, type Peering } from "../joining/peering.ts";
import { createUses } from "./uses.ts";
import { createValues, type Values } from "./values.ts";

export interface StartValuesDeps {
  readonly orchestrators: Orchestrators;
  readonly peering: Peering;
  readonly now: () => number;
  readonly log: Log;
}

export function startValues({ orchestrators, peering, now, log }: StartValuesDeps, teardown: Teardown): Values {
  const orchestrator = connectToAny(valueApi, {
    orchestrators,
    name: "orchestrator",
    headers: () => authorization(peering),
    meeting: peering.meeting,
  });
  teardown.add("connection for placeholders", () => orchestrator.close());
  const uses = createUses({ orchestrator: orchestrator.call, now, log });
  teardown.add("uses of placeholders", () => uses.stop());
  const values = createValues({
    orchestrator: orchestrator.call,
    onUse: (asked, times) => uses.count(asked, times),
    onEnd: () => uses.soon(),
    now,
  });
  teardown.add("values of placeholders", () => values.stop());
  return values;
}
