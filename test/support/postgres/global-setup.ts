/**
 * With SVC_TEST_DATABASE=postgres: starts one server for a whole run, and SVC_TEST_POSTGRES tells the workers where it is.
 * Projects share it.
 */

import { type PostgresServer, startPostgres } from "./cluster.ts";

const shared = globalThis as { testPostgres?: Promise<PostgresServer>; testPostgresUsers?: number };

export async function setup(): Promise<void> {
  if (process.env["SVC_TEST_DATABASE"] !== "postgres") return;
  shared.testPostgresUsers = (shared.testPostgresUsers ?? 0) + 1;
  shared.testPostgres ??= startPostgres();
  process.env["SVC_TEST_POSTGRES"] = (await shared.testPostgres).url;
}

export async function teardown(): Promise<void> {
  const running = shared.testPostgres;
  if (running === undefined) return;
  shared.testPostgresUsers = (shared.testPostgresUsers ?? 1) - 1;
  if (shared.testPostgresUsers > 0) return;
  delete shared.testPostgres;
  await (await running).stop();
}
