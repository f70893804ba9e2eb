/** What was sent to a webhook: each delivery with its body and every attempt, and what is sent again. */

import { useState } from "preact/hooks";
import type { DeliveryView } from "../../../shared/api/events/webhooks.ts";
import { act, get } from "../base/client.ts";
import { time } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { CheckField } from "../parts/field.tsx";
import { Code, Empty, Failure, State, Table } from "../parts/parts.tsx";
import { attemptsOf } from "./attempts.ts";

const NEWEST = 100;

export function Deliveries({ id }: { readonly id: string }) {
  const path = `/events/webhooks/${id}/deliveries`;
  const [chosen, setChosen] = useState<DeliveryView | undefined>(undefined);
  const [failedOnly, setFailedOnly] = useState(false);
  const doing = useDoing();
  const loaded = useLoaded(
    (signal) => get<DeliveryView[]>(path, { limit: NEWEST, status: failedOnly ? "failed" : undefined }, signal),
    [path, failedOnly],
    5_000,
  );
  const again = (delivery: string) =>
    doing.run(async () => {
      await act("POST", `${path}/${delivery}/redeliver`);
      loaded.again();
    });
  // A further attempt is shown as soon as the list has it.
  const shown = loaded.value?.find((each) => each.id === chosen?.id) ?? chosen;
  return (
    <>
      <h2>Deliveries</h2>
      <Failure of={loaded.error ?? doing.error} />
      <CheckField label="Failed only" checked={failedOnly} onChecked={setFailedOnly} />
      {loaded.value?.length === 0 && (
        <Empty title={failedOnly ? "No delivery has failed." : "Nothing was sent yet. ‘Test’ sends an event."} />
      )}
      {loaded.value?.length === NEWEST && <p class="small">The newest {NEWEST} are shown.</p>}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="Deliveries"
          items={loaded.value}
          keyOf={(delivery) => delivery.id}
          columns={[
            { name: "When", show: ({ createdAt }) => time(createdAt) },
            { name: "Event", show: ({ eventType }) => eventType },
            { name: "State", show: ({ status }) => <State of={status} /> },
            { name: "Attempts", show: ({ attempts }) => attempts },
            { name: "Answer", show: ({ lastAttempt }) => lastAttempt?.httpStatus ?? lastAttempt?.error ?? "–" },
            {
              name: "Acts",
              show: (delivery) => (
                <span class="acts">
                  <button
                    type="button"
                    aria-pressed={delivery.id === shown?.id}
                    aria-label={`Show ${delivery.id}`}
                    onClick={() => setChosen(delivery)}
                  >
                    Show
                  </button>
                  <button
                    type="button"
                    disabled={doing.busy || !may("admin")}
                    aria-label={`Send again: ${delivery.id}`}
                    onClick={() => again(delivery.id)}
                  >
                    Send again
                  </button>
                </span>
              ),
            },
          ]}
        />
      )}
      {shown !== undefined && <Delivery of={shown} />}
    </>
  );
}

function Delivery({ of: delivery }: { readonly of: DeliveryView }) {
  const { lastAttempt, nextAttemptAt } = delivery;
  const attempts = attemptsOf(delivery);
  return (
    <>
      <div class="beside">
        <Code label="Body" text={delivery.requestBody ?? "not kept"} />
        <Code label="Answer" text={lastAttempt?.responseBody ?? lastAttempt?.error ?? "none"} />
      </div>
      <h3>Attempts</h3>
      {attempts.length === 0 && <p class="small">None was made yet.</p>}
      {attempts.length < delivery.attempts && <p class="small">The log has the last {attempts.length} of them.</p>}
      {nextAttemptAt !== undefined && <p class="small">The next one comes at {time(nextAttemptAt)}.</p>}
      {attempts.length > 0 && (
        <Table
          label={`Attempts of ${delivery.id}`}
          items={attempts}
          keyOf={({ number }) => String(number)}
          columns={[
            { name: "Attempt", show: ({ number }) => number },
            { name: "When", show: ({ at }) => time(at) },
            { name: "Took", show: ({ took }) => took },
            { name: "Answer", show: ({ answer }) => answer },
            { name: "What was wrong", show: ({ error }) => error },
            { name: "Beginning of what was answered", show: ({ body }) => <code>{body}</code> },
          ]}
        />
      )}
    </>
  );
}
