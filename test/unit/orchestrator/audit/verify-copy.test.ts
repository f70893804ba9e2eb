import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { verifyAudit } from "../../../../orchestrator/audit/verify-copy.ts";
import { openDatabase } from "../../../../orchestrator/store/database.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { newDatabase } from "../../../support/store/databases.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

test("the log of a database that no orchestrator uses can be verified", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-audit-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const copy = await newDatabase({ folder });
  onTestFinished(() => copy.drop());
  const { place } = copy;
  const opened = await openDatabase(place);
  const { database } = opened;
  const store = createStore(database, () => 5, testSeal);
  const object = { kind: "platform", id: "p" };
  for (const action of ["rotate", "rotate", "rotate"]) {
    await database
      .transaction()
      .execute((session) => store.audit.note(session, { at: 1, action, object, projectId: undefined }));
  }
  const head = await store.audit.head();
  await opened.close();
  expect(await verifyAudit(place, head)).toMatchObject({ whole: true, entries: 3, head });
  expect(await verifyAudit(place, { seq: 4, hash: head.hash })).toMatchObject({ whole: false, broken: { seq: 4 } });
  await copy.query("update audit_log set actor_kind = 'admin' where seq = 2");
  expect(await verifyAudit(place, undefined)).toMatchObject({ whole: false, broken: { seq: 2, fault: "edited" } });
  await expect(verifyAudit(join(folder, "none.db"), undefined)).rejects.toThrow("no database at");
});
