/** What has happened to the sandbox, with the reason of each event, and who has changed it. */

import type { SandboxEvent } from "../../../shared/api/events.ts";
import { get } from "../base/client.ts";
import { eventName, pairs, time } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { AuditLog } from "../parts/audit-log.tsx";
import { Empty, Failure, Table } from "../parts/parts.tsx";
import type { TabProps } from "./tab.ts";

export function TimelineTab({ sandbox }: TabProps) {
  const path = `/events/sandboxes/${sandbox.sandboxID}`;
  // A state that has changed has an event.
  const loaded = useLoaded(
    (signal) => get<SandboxEvent[]>(path, { limit: 100, orderAsc: false }, signal),
    [path, sandbox.state, sandbox.endAt],
  );
  const events = loaded.value;
  return (
    <>
      <Failure of={loaded.error} />
      {events?.length === 0 && <Empty title="The platform keeps no event of this sandbox any more." />}
      {events !== undefined && events.length > 0 && (
        <Table
          label="Events of the sandbox"
          items={events}
          keyOf={({ id }) => id}
          columns={[
            { name: "When", show: ({ timestamp }) => time(timestamp) },
            { name: "What", show: ({ type }) => <span class="strong">{eventName(type)}</span> },
            { name: "Why and how", show: ({ eventData }) => pairs(eventData) || "–" },
            { name: "Execution", show: ({ sandboxExecutionId }) => <code>{sandboxExecutionId.slice(0, 8)}</code> },
          ]}
        />
      )}
      {!may("admin") && (
        <p class="small">Who changed it is in the audit log, which is shown to keys with the scope ‘admin’.</p>
      )}
      {may("admin") && (
        <>
          <h2>Who changed it</h2>
          <AuditLog
            path="/audit"
            label="Who changed the sandbox"
            query={{ object: sandbox.sandboxID }}
            empty="The audit log has no entry of this sandbox."
            needs={[sandbox.state, sandbox.endAt]}
          />
        </>
      )}
    </>
  );
}
