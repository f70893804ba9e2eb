/** With SVC_TEST_DATABASE=postgres: a server for as long as the tests run, in SVC_TEST_POSTGRES for their workers. */

import { startPostgres } from "./cluster.ts";

export default async function setUp(): Promise<(() => Promise<void>) | undefined> {
  if (process.env["SVC_TEST_DATABASE"] !== "postgres") return undefined;
  const server = await startPostgres();
  process.env["SVC_TEST_POSTGRES"] = server.url;
  return () => server.stop();
}
