/** Both programs may be given one environment: each knows the other's settings by name, and neither swallows a typo. */

import type { TObject } from "typebox";
import { expect, test } from "vitest";
import { AgentConfig, FOREIGN_SETTINGS as foreignToAgent } from "../../../agent/config.ts";
import { FOREIGN_SETTINGS as foreignToOrchestrator, OrchestratorConfig } from "../../../orchestrator/config.ts";

function names(schema: TObject): string[] {
  return Object.keys(schema.properties).map((name) =>
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase(),
  );
}

test.each([
  ["orchestrator", OrchestratorConfig, foreignToOrchestrator, AgentConfig],
  ["agent", AgentConfig, foreignToAgent, OrchestratorConfig],
])("the %s takes the other's settings for what they are", (_name, own, foreign, other) => {
  const known = new Set([...names(own), ...foreign]);
  expect(names(other).filter((name) => !known.has(name))).toEqual([]);
});
