/** Another program, such as a backup, writes to the SQLite database for a moment. */

import { setTimeout as delay } from "node:timers/promises";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { startMortalCluster } from "../../../support/cluster/mortal-cluster.ts";

/** Less than the store waits for another writer. */
const HELD_MS = 1_000;

test("a create waits until another program has written to the database, and is done then", async () => {
  const cluster = await startMortalCluster({}, { server: null });
  onTestFinished(() => cluster.stop());
  const other = new Database(cluster.orchestrator.database.place);
  onTestFinished(() => void other.close());
  const held = async () => {
    other.exec("begin immediate");
    const create = cluster.ask("POST", "/v2/sandboxes", { templateID: "base", timeout: 3600 });
    const waits = await Promise.race([create, delay(HELD_MS, "waits")]);
    other.exec("rollback");
    const { status, body } = await create;
    if (status !== 201) return [waits, status];
    const { sandboxID } = body as { sandboxID: string };
    return [waits, status, (await cluster.ask("GET", `/sandboxes/${sandboxID}`)).body];
  };
  // On a busy machine the moment may be longer than the store waits.
  const running = expect.objectContaining({ state: "running" }) as unknown;
  await expect.poll(held).toEqual(["waits", 201, running]);
}, 60_000);
