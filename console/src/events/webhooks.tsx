/** Webhooks of the project. */

import { useState } from "preact/hooks";
import type { WebhookView } from "../../../shared/api/events/webhooks.ts";
import { act, get } from "../base/client.ts";
import { time } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { onSubmit, TextField } from "../parts/field.tsx";
import { Danger, Empty, Failure, Screen, Table } from "../parts/parts.tsx";
import { Deliveries } from "./deliveries.tsx";

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
            { name: "Gets", show: ({ events }) => events.map((type) => type.split(".").at(-1)).join(", ") },
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
