/** Seven kinds of test; README.md says which goes where. */

import { defineConfig } from "vitest/config";

const root = new URL("..", import.meta.url).pathname;
const project = (
  name: string,
  limits: {
    testTimeout: number;
    hookTimeout: number;
    alone?: boolean;
    internet?: boolean;
    database?: boolean;
    programs?: boolean;
    shared?: boolean;
  },
) => ({
  root,
  test: {
    name,
    root,
    include: [`test/${name}/**/*.test.ts`],
    pool: "forks" as const,
    // Starting a process and loading the libraries takes longer than a file of unit tests. Files that share a process
    // leave it as they found it, and the setup file fails those that do not.
    isolate: limits.shared !== true,
    setupFiles: limits.shared === true ? ["test/support/runner/leaves-process-as-found.ts"] : [],
    testTimeout: limits.testTimeout,
    hookTimeout: limits.hookTimeout,
    // One Docker daemon and one platform: files that use them take turns.
    fileParallelism: limits.alone !== true,
    passWithNoTests: false,
    // What the platform's sandboxes may or may not reach, for as long as the project runs.
    globalSetup: [
      ...(limits.internet === true ? ["test/support/internet/global-setup.ts"] : []),
      ...(limits.database === true ? ["test/support/postgres/global-setup.ts"] : []),
      ...(limits.programs === true ? ["test/support/agent/built-agent.ts"] : []),
    ],
    // A busy machine of two cores: the limit of a wait is not what a test is about.
    expect: { poll: { timeout: 10_000, interval: 50 } },
  },
});

export default defineConfig({
  test: {
    projects: [
      // A busy machine of two cores: a limit ends a test that hangs, and says nothing about speed.
      project("unit", { testTimeout: 20_000, hookTimeout: 20_000, database: true, shared: true }),
      project("integration", { testTimeout: 30_000, hookTimeout: 30_000, database: true }),
      project("fuzz", { testTimeout: 120_000, hookTimeout: 20_000 }),
      project("docker", { testTimeout: 120_000, hookTimeout: 120_000, alone: true, programs: true }),
      project("snapshots", { testTimeout: 120_000, hookTimeout: 120_000, alone: true, programs: true }),
      project("conformance", { testTimeout: 120_000, hookTimeout: 120_000, alone: true, internet: true }),
      project("chaos", { testTimeout: 120_000, hookTimeout: 120_000, alone: true, internet: true }),
    ],
  },
});
