/** Constructs the audit log: recording of requests, its writer, its handlers, its retention. */

import type { Transaction } from "kysely";
import type { Base } from "../base/base.ts";
import type { SecretUse } from "../store/secrets/uses.ts";
import type { Store } from "../store/store.ts";
import type { Tables } from "../store/tables.ts";
import { createAuditHandlers } from "./handlers.ts";
import { startKeeping } from "./keeping.ts";
import { createRecording } from "./recording.ts";
import { createRefusals } from "./refusals.ts";
import { createAuditWriter } from "./writer.ts";

const DAY_MS = 86_400_000;
const ROUND_MS = 60_000;

export function startAudit({ config, log, now, teardown, leases }: Base, store: Store) {
  const writer = createAuditWriter({ store: store.audit, log });
  teardown.add("audit entries", () => writer.flush());
  const recording = createRecording({ writer, refusals: createRefusals(now), now });
  const keeping = startKeeping({
    store: store.audit,
    keepMs: config.auditKeepDays * DAY_MS,
    now,
    log,
    everyMs: ROUND_MS,
    leases,
    noteLeftOut: () => recording.noteLeftOut(),
  });
  teardown.add("audit retention", () => keeping.stop());
  /** The first use of a version of a secret by an execution, in the transaction that notes it. */
  const noteUse = (session: Transaction<Tables>, { name, version, projectId, sandboxId, executionId }: SecretUse) =>
    store.audit.note(session, {
      at: now(),
      action: "useSecret",
      projectId,
      object: { kind: "secret", id: name },
      details: { version, sandboxID: sandboxId, executionID: executionId },
    });
  return {
    recording,
    noteUse,
    handlers: createAuditHandlers({ store: store.audit, projects: store.projects, writer }),
  };
}
