/** Secrets of the project: their names and use. A value goes to the server once and never comes back. */

import { useState } from "preact/hooks";
import type { Secret } from "../../../shared/api/secrets.ts";
import { act, pages } from "../base/client.ts";
import { time } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { onSubmit, TextField } from "../parts/field.tsx";
import { Danger, Empty, Failure, Screen, Table } from "../parts/parts.tsx";
import { SecretPlaces } from "./secret-places.tsx";

export function SecretsScreen() {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [looked, look] = useState<string | undefined>(undefined);
  const doing = useDoing();
  const loaded = useLoaded((signal) => pages<Secret>("/secrets", signal), []);
  const then = (work: () => Promise<unknown>) =>
    doing.run(async () => {
      await work();
      loaded.again();
    });
  const save = () =>
    then(async () => {
      const known = loaded.value?.find((each) => each.name === name.toLowerCase());
      await (known === undefined
        ? act("POST", "/secrets", { name, value })
        : act("POST", `/secrets/${known.secretID}`, { value }));
      setName("");
      setValue("");
    });
  const remove = (secret: Secret) =>
    then(async () => {
      await act("DELETE", `/secrets/${secret.secretID}`);
      look((one) => (one === secret.name ? undefined : one));
    });
  const disabled = doing.busy || !may("admin");
  return (
    <Screen title="Secrets">
      <form class="bar" onSubmit={onSubmit(save)}>
        <TextField label="Name" value={name} onValue={setName} required />
        <TextField label="Value" type="password" value={value} onValue={setValue} required />
        <button type="submit" disabled={disabled}>
          Store
        </button>
      </form>
      <p class="small">A name that exists gets the new value.</p>
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value?.length === 0 && (
        <Empty title="The project has no secret.">
          <p>A rule for a host puts a secret into requests outside the sandbox, which never has the value.</p>
        </Empty>
      )}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="Secrets"
          items={loaded.value}
          keyOf={({ secretID }) => secretID}
          columns={[
            { name: "Name", show: (secret) => <code>{secret.name}</code> },
            { name: "Version", show: ({ currentVersion }) => currentVersion },
            { name: "Used", show: ({ useCount }) => `${useCount} times` },
            { name: "Last", show: ({ lastUsedAt }) => time(lastUsedAt) },
            { name: "Changed", show: ({ updatedAt }) => time(updatedAt) },
            {
              name: "Acts",
              show: (secret) => (
                <span class="acts">
                  <button
                    type="button"
                    aria-pressed={secret.name === looked}
                    aria-label={`Hosts of ${secret.name}`}
                    onClick={() => look(secret.name === looked ? undefined : secret.name)}
                  >
                    Hosts
                  </button>
                  <Danger
                    disabled={disabled}
                    label={`Delete ${secret.name}`}
                    onAsk={() => look(secret.name)}
                    onConfirm={() => remove(secret)}
                  >
                    Delete
                  </Danger>
                </span>
              ),
            },
          ]}
        />
      )}
      {looked !== undefined && loaded.value?.some((secret) => secret.name === looked) === true && (
        <SecretPlaces key={looked} name={looked} />
      )}
    </Screen>
  );
}
