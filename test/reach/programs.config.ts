/** The programs of the conformance tests that `elsewhere.test.ts` runs on a machine that has only a domain and a key. */

import { defineConfig } from "vitest/config";

const root = new URL("../..", import.meta.url).pathname;

export default defineConfig({
  root,
  test: {
    root,
    include: [
      "processes/commands",
      "processes/pty",
      "files/files",
      "files/watch",
      "sandboxes/list",
      "snapshots/pause-resume",
      "snapshots/fork",
    ].map((name) => `test/conformance/${name}.test.ts`),
    pool: "forks",
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 10_000, interval: 50 } },
  },
});
