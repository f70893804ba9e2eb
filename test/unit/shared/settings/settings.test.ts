/** Both programs may get one environment: each accepts the other's settings, and both refuse a misspelt one. */

import { expect, test } from "vitest";
import { readAgentConfig } from "../../../../agent/config.ts";
import { readOrchestratorConfig } from "../../../../orchestrator/config.ts";

const SECRET = "a secret of sixteen or more";

const OF_BOTH = {
  SVC_ADMIN_TOKEN: SECRET,
  SVC_NODE_KEY: SECRET,
  SVC_SEED: SECRET,
  SVC_ENCRYPTION_KEY: SECRET,
  SVC_RATE_LIMIT_READ_PER_SECOND: "7",
  SVC_NODE_TOKEN: SECRET,
  SVC_ORCHESTRATOR_TOKEN: SECRET,
  SVC_DISK_RESERVE_MB: "5",
  SVC_EGRESS_PROXY_ALLOW: "198.51.100.0/24",
  SVC_INSTANCE: "main",
  SVC_API_URL: "http://127.0.0.1:3000",
  SVC_SANDBOX_URL: "http://127.0.0.1:3002",
  SVC_API_KEY: SECRET,
  PATH: "/bin",
};

test("one environment has the settings of both programs and of the scripts", () => {
  expect(readOrchestratorConfig(OF_BOTH)).toMatchObject({ seed: SECRET, rateLimitReadPerSecond: 7 });
  expect(readAgentConfig(OF_BOTH)).toMatchObject({ nodeToken: SECRET, diskReserveMb: 5 });
  // Each program reads the settings that both know and its own, and not the other's.
  for (const config of [readOrchestratorConfig(OF_BOTH), readAgentConfig(OF_BOTH)]) {
    expect(config).toMatchObject({ egressProxyAllow: "198.51.100.0/24" });
  }
  expect(readAgentConfig(OF_BOTH)).not.toHaveProperty("seed");
  expect(readOrchestratorConfig(OF_BOTH)).not.toHaveProperty("nodeToken");
});

test("a setting of the other program may be the name of a file, which is not read", () => {
  const { SVC_SEED: _, ...others } = OF_BOTH;
  expect(readAgentConfig({ ...others, SVC_SEED_FILE: "/nowhere/seed" })).toMatchObject({ nodeToken: SECRET });
});

test.each([
  ["orchestrator", readOrchestratorConfig],
  ["agent", readAgentConfig],
])("the %s refuses a name that no program knows", (_name, read) => {
  expect(() => read({ ...OF_BOTH, SVC_DISK_RESERVE: "5" })).toThrow("SVC_DISK_RESERVE is not a setting");
});

test("a node cannot be lost before it is unhealthy: the refusal names both settings with their values", () => {
  const silence = { SVC_NODE_TIMEOUT_MS: "20000", SVC_NODE_LOST_MS: "19999" };
  expect(() => readOrchestratorConfig({ ...OF_BOTH, ...silence })).toThrow(
    "SVC_NODE_LOST_MS 19999 is less than SVC_NODE_TIMEOUT_MS 20000",
  );
  // The default of the other one counts too.
  expect(() => readOrchestratorConfig({ ...OF_BOTH, SVC_NODE_TIMEOUT_MS: "100000" })).toThrow(
    "SVC_NODE_LOST_MS 90000 is less than SVC_NODE_TIMEOUT_MS 100000",
  );
  expect(readOrchestratorConfig({ ...OF_BOTH, ...silence, SVC_NODE_LOST_MS: "20000" })).toMatchObject({
    nodeLostMs: 20_000,
  });
});
