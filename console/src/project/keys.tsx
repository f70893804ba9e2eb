/** API keys of the project: what each may do, and when it was used. A new key is shown once. */

import { useState } from "preact/hooks";
import type { Static } from "typebox";
import { Link } from "wouter-preact";
import type { CreatedTeamApiKey, TeamApiKey } from "../../../shared/api/teams.ts";
import { act, get } from "../base/client.ts";
import { time } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { AuditLog } from "../parts/audit-log.tsx";
import { Choice, onSubmit, TextField } from "../parts/field.tsx";
import { Code, Danger, Failure, Table } from "../parts/parts.tsx";

const ALL = "read,sandboxes,templates,admin";
const KINDS = [
  ["read", "reads (viewer)"],
  ["read,sandboxes", "reads, and changes sandboxes"],
  ["read,sandboxes,templates", "reads, and changes sandboxes and templates"],
  [ALL, "everything"],
] as const;

export function Keys() {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<string>(KINDS[1][0]);
  const [days, setDays] = useState("");
  const [made, setMade] = useState<string | undefined>(undefined);
  const [traced, trace] = useState<Pick<TeamApiKey, "id" | "name"> | undefined>(undefined);
  const doing = useDoing();
  const loaded = useLoaded((signal) => get<TeamApiKey[]>("/api-keys", {}, signal), []);
  const create = () =>
    doing.run(async () => {
      const expiry = days === "" ? {} : { expiresAt: new Date(Date.now() + Number(days) * 86_400_000).toISOString() };
      const body = { name, scopes: scopes.split(","), ...expiry };
      setMade((await act<Static<typeof CreatedTeamApiKey>>("POST", "/api-keys", body)).key);
      setName("");
      loaded.again();
    });
  const revoke = (id: string) =>
    doing.run(async () => {
      await act("DELETE", `/api-keys/${id}`);
      loaded.again();
    });
  const disabled = doing.busy || !may("admin");
  return (
    <>
      <h2>API keys</h2>
      <form class="bar" onSubmit={onSubmit(create)}>
        <TextField label="Name" value={name} onValue={setName} required />
        <Choice label="May" value={scopes} options={KINDS} onValue={setScopes} />
        <TextField label="Days (empty: no end)" type="number" value={days} onValue={setDays} />
        <button type="submit" disabled={disabled}>
          Create a key
        </button>
      </form>
      {made !== undefined && <Code label="The new key, shown this once" text={made} />}
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value !== undefined && (
        <Table
          label="API keys"
          items={loaded.value}
          keyOf={({ id }) => id}
          columns={[
            { name: "Name", show: (key) => key.name },
            {
              name: "Key",
              show: ({ mask }) => <code>{`${mask.prefix}${mask.maskedValuePrefix}…${mask.maskedValueSuffix}`}</code>,
            },
            { name: "May", show: (key) => key.scopes.join(", ") },
            { name: "Last used", show: ({ lastUsed }) => time(lastUsed) },
            { name: "Ends", show: ({ expiresAt }) => time(expiresAt) },
            {
              name: "Acts",
              show: (key) => (
                <span class="acts">
                  {may("admin") && (
                    <button
                      type="button"
                      aria-pressed={key.id === traced?.id}
                      aria-label={`What it did: ${key.name}`}
                      onClick={() => trace(key.id === traced?.id ? undefined : key)}
                    >
                      What it did
                    </button>
                  )}
                  <Danger disabled={disabled} label={`Revoke ${key.name}`} onConfirm={() => revoke(key.id)}>
                    Revoke
                  </Danger>
                </span>
              ),
            },
          ]}
        />
      )}
      {traced !== undefined && <Trace key={traced.id} of={traced} />}
    </>
  );
}

/** Stays when the key is revoked: what a leaked key has begun goes on after that. */
function Trace({ of: { id, name } }: { readonly of: Pick<TeamApiKey, "id" | "name"> }) {
  return (
    <section aria-label={`What ${name} did`}>
      <h3>What {name} did</h3>
      <p class="small">
        A key that has leaked: revoke it, then end <Link href={`/?key=${id}`}>the sandboxes that it created</Link>, and
        look below for keys, secrets and webhooks that it made.
      </p>
      <AuditLog
        path="/audit"
        label={`Audit log of ${name}`}
        query={{ actor: id }}
        empty="The audit log has no entry of this key."
      />
    </section>
  );
}
