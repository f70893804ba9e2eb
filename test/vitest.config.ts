/** The kinds of test; README.md says which goes where. */

import { realpathSync } from "node:fs";
import { defineConfig } from "vitest/config";

const root = new URL("..", import.meta.url).pathname;
// An older one crashes without a word when a test opens a database.
if (process.execPath !== realpathSync(`${root}node_modules/.bin/node`))
  throw new Error("the tests run on the Node of this checkout: start them with `npm run` or `npx`");
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
    folder?: boolean;
  },
) => ({
  root,
  test: {
    name,
    root,
    include: [`test/${name}/**/*.test.ts`],
    pool: "forks" as const,
    // Starting a process and loading the libraries takes longer than the tests of most files. Such files share a process and
    // leave it as they found it; the setup file fails those that do not.
    isolate: limits.shared !== true,
    setupFiles: limits.shared === true ? ["test/support/runner/leaves-process-as-found.ts"] : [],
    testTimeout: limits.testTimeout,
    hookTimeout: limits.hookTimeout,
    // There is one Docker daemon and one platform: files that use them run one after the other.
    fileParallelism: limits.alone !== true,
    passWithNoTests: false,
    // What a project needs for its whole run: a folder for temporary files, the test internet, a PostgreSQL server, the built agent.
    globalSetup: [
      ...(limits.folder === true ? ["test/support/runner/run-folder.ts"] : []),
      ...(limits.internet === true ? ["test/support/internet/global-setup.ts"] : []),
      ...(limits.database === true ? ["test/support/postgres/global-setup.ts"] : []),
      ...(limits.programs === true ? ["test/support/agent/built-agent.ts"] : []),
    ],
    // A machine with two cores can be busy: no test is about the limit of a wait.
    expect: { poll: { timeout: 30_000, interval: 50 } },
  },
});

export default defineConfig({
  test: {
    projects: [
      // A machine with two cores can be busy: these limits end a test that hangs, and do not judge speed.
      project("unit", { testTimeout: 60_000, hookTimeout: 60_000, database: true, shared: true, folder: true }),
      project("integration", { testTimeout: 90_000, hookTimeout: 90_000, database: true, shared: true, folder: true }),
      project("fuzz", { testTimeout: 240_000, hookTimeout: 60_000, folder: true }),
      project("docker", { testTimeout: 240_000, hookTimeout: 240_000, alone: true, programs: true }),
      project("snapshots", { testTimeout: 240_000, hookTimeout: 240_000, alone: true, programs: true }),
      project("conformance", { testTimeout: 240_000, hookTimeout: 240_000, alone: true, internet: true, shared: true }),
      project("browser", { testTimeout: 600_000, hookTimeout: 240_000, alone: true }),
      project("chaos", { testTimeout: 240_000, hookTimeout: 240_000, alone: true, internet: true }),
      project("reach", { testTimeout: 300_000, hookTimeout: 60_000, alone: true }),
      // `npm run test:starters`, where the templates desktop and browser were built.
      project("starters", { testTimeout: 900_000, hookTimeout: 120_000, alone: true }),
      // `npm run test:doctor` on an instance of its own.
      project("doctor", { testTimeout: 180_000, hookTimeout: 180_000, alone: true }),
      project("fleet", { testTimeout: 300_000, hookTimeout: 300_000, alone: true }),
      project("machines", { testTimeout: 600_000, hookTimeout: 600_000, alone: true }),
      // `npm run test:upgrade` and `test:upgrade-fleet` put an earlier version's tools on the machine for a while.
      project("upgrade", { testTimeout: 900_000, hookTimeout: 900_000, alone: true }),
      // `npm run test:systemd`: the Debian package in a Debian of its own, with systemd as its first process.
      project("systemd", { testTimeout: 900_000, hookTimeout: 1_800_000, alone: true }),
      // `npm run test:reboot` ends every container of the machine's Docker daemon.
      project("reboot", { testTimeout: 600_000, hookTimeout: 600_000, alone: true }),
    ],
  },
});
