/** Webhooks of the project, and the log of what was sent to each. */

import { useState } from "preact/hooks";
import type { DeliveryView, WebhookView } from "../../../shared/api/events/webhooks.ts";
import { act, get } from "../base/client.ts";
import { time } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { CheckField, onSubmit, TextField } from "../parts/field.tsx";
import { Code, Danger, Empty, Failure, Screen, State, Table } from "../parts/parts.tsx";

const EVERY = ["created", "paused", "resumed", "killed"].map((name) => `sandbox.lifecycle.${name}`);

export function WebhooksScreen() {
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const doing = useDoing();
  const loaded = useLoaded((signal) => get<WebhookView[]>("/events/webhooks", {}, signal), []);
  const then = (work: () => Promise<unknown>) =>
    doing.run(async () => {
      await work();
      loaded.again();
    });
  const remove = (id: string) => {
    // The log of a webhook that is gone cannot be asked for.
    if (chosen === id) setChosen(undefined);
    then(() => act("DELETE", `/events/webhooks/${id}`));
  };
  const disabled = doing.busy || !may("admin");
  return (
    <Screen title="Webhooks">
      <NewWebhook disabled={disabled} create={(body) => then(() => act("POST", "/events/webhooks", body))} />
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value?.length === 0 && (
        <Empty title="No event is sent anywhere.">
          <p>A webhook gets a signed POST for each start, pause, resume and end of a sandbox.</p>
        </Empty>
      )}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="Webhooks"
          items={loaded.value}
          keyOf={({ id }) => id}
          columns={[
            { name: "Name", show: ({ name }) => name },
            { name: "To", show: ({ url }) => <code>{url}</code> },
            { name: "State", show: (hook) => stateOf(hook) },
            {
              name: "Acts",
              show: ({ id, name, enabled }) => (
                <span class="acts">
                  <button
                    type="button"
                    aria-pressed={chosen === id}
                    aria-label={`Deliveries to ${name}`}
                    onClick={() => setChosen(id)}
                  >
                    Deliveries
                  </button>
                  <button
                    type="button"
                    disabled={disabled}
                    onClick={() => then(() => act("POST", `/events/webhooks/${id}/test`))}
                  >
                    Test
                  </button>
                  <button
                    type="button"
                    disabled={disabled}
                    onClick={() => then(() => act("PATCH", `/events/webhooks/${id}`, { enabled: !enabled }))}
                  >
                    {enabled ? "Disable" : "Enable"}
                  </button>
                  <Danger disabled={disabled} label={`Delete ${name}`} onConfirm={() => remove(id)}>
                    Delete
                  </Danger>
                </span>
              ),
            },
          ]}
        />
      )}
      {chosen !== undefined && loaded.value?.some(({ id }) => id === chosen) === true && (
        <Deliveries key={chosen} id={chosen} />
      )}
    </Screen>
  );
}

function stateOf({ enabled, disabledReason, failingSince }: WebhookView): string {
  if (!enabled) return disabledReason === undefined ? "disabled" : `disabled: ${disabledReason}`;
  return failingSince === undefined ? "enabled" : `failing since ${time(failingSince)}`;
}

function NewWebhook(props: { readonly disabled: boolean; readonly create: (body: object) => void }) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [signatureSecret, setSecret] = useState("");
  const submit = () => props.create({ name, url, signatureSecret, events: EVERY });
  return (
    <form class="bar" onSubmit={onSubmit(submit)}>
      <TextField label="Name" value={name} onValue={setName} required />
      <TextField label="URL" value={url} onValue={setUrl} required placeholder="https://example.com/hook" />
      <TextField
        label="Secret of its signatures"
        type="password"
        value={signatureSecret}
        onValue={setSecret}
        required
      />
      <button type="submit" disabled={props.disabled}>
        Create a webhook
      </button>
    </form>
  );
}

function Deliveries({ id }: { readonly id: string }) {
  const path = `/events/webhooks/${id}/deliveries`;
  const [shown, setShown] = useState<DeliveryView | undefined>(undefined);
  const [failedOnly, setFailedOnly] = useState(false);
  const doing = useDoing();
  const loaded = useLoaded(
    (signal) => get<DeliveryView[]>(path, { limit: 100, status: failedOnly ? "failed" : undefined }, signal),
    [path, failedOnly],
    5_000,
  );
  const again = (delivery: string) =>
    doing.run(async () => {
      await act("POST", `${path}/${delivery}/redeliver`);
      loaded.again();
    });
  return (
    <>
      <h2>Deliveries</h2>
      <Failure of={loaded.error ?? doing.error} />
      <CheckField label="Failed only" checked={failedOnly} onChecked={setFailedOnly} />
      {loaded.value?.length === 0 && (
        <Empty title={failedOnly ? "No delivery has failed." : "Nothing was sent yet. ‘Test’ sends an event."} />
      )}
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
                  <button type="button" aria-label={`Show ${delivery.id}`} onClick={() => setShown(delivery)}>
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
      {shown !== undefined && (
        <div class="beside">
          <Code label="Body" text={shown.requestBody ?? "not kept"} />
          <Code label="Answer" text={shown.lastAttempt?.responseBody ?? shown.lastAttempt?.error ?? "none"} />
        </div>
      )}
    </>
  );
}
