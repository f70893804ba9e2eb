/** API keys of the project: what each may do, and when it was used. A new key is shown once. */

import { useState } from "preact/hooks";
import type { Static } from "typebox";
import { Link } from "wouter-preact";
import type { CreatedTeamApiKey, TeamApiKey } from "../../../shared/api/teams.ts";
import { act, get } from "../base/client.ts";
import { time } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may, session } from "../base/session.ts";
import { AuditLog } from "../parts/audit-log.tsx";
import { Choice, onSubmit, TextField } from "../parts/field.tsx";
import { Code, Danger, Empty, Failure, Table } from "../parts/parts.tsx";
import { maskOf, successorOf, titleOf } from "./rotation.ts";

const ALL = "read,sandboxes,templates,admin";
const KINDS = [
  ["read", "reads (viewer)"],
  ["read,sandboxes", "reads, and changes sandboxes"],
  ["read,sandboxes,templates", "reads, and changes sandboxes and templates"],
  [ALL, "everything"],
] as const;

interface Made {
  /** Shown this once. */
  readonly key: string;
  /** Id of the key in whose place it was made; undefined: it is in no other's place. */
  readonly insteadOf: string | undefined;
}

/** The keys of which project, and where its audit log is. */
interface KeyPlaces {
  readonly keys: string;
  readonly audit: { readonly path: "/audit" | "/admin/audit"; readonly query: Readonly<Record<string, string>> };
}

/** The project that the other screens show. */
const SHOWN: KeyPlaces = { keys: "/api-keys", audit: { path: "/audit", query: {} } };

/** Those of any project, for operators. */
export function placesOf(teamID: string): KeyPlaces {
  return { keys: `/admin/teams/${teamID}/api-keys`, audit: { path: "/admin/audit", query: { teamID } } };
}

export function Keys({ places = SHOWN }: { readonly places?: KeyPlaces }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<string>(KINDS[1][0]);
  const [days, setDays] = useState("");
  const [made, setMade] = useState<Made | undefined>(undefined);
  const [asked, ask] = useState<string | undefined>(undefined);
  const [traced, trace] = useState<Pick<TeamApiKey, "id" | "name"> | undefined>(undefined);
  const doing = useDoing();
  const loaded = useLoaded((signal) => get<TeamApiKey[]>(places.keys, {}, signal), [places.keys]);
  const make = async (body: object, insteadOf?: string) => {
    const { key } = await act<Static<typeof CreatedTeamApiKey>>("POST", places.keys, body);
    setMade({ key, insteadOf });
    loaded.again();
  };
  const create = () =>
    doing.run(async () => {
      const expiry = days === "" ? {} : { expiresAt: new Date(Date.now() + Number(days) * 86_400_000).toISOString() };
      await make({ name, scopes: scopes.split(","), ...expiry });
      setName("");
    });
  const rotate = (key: TeamApiKey) => doing.run(() => make(successorOf(key, Date.now()), key.id));
  const revoke = (id: string) =>
    doing.run(async () => {
      await act("DELETE", `${places.keys}/${id}`);
      loaded.again();
    });
  const disabled = doing.busy || !may("admin");
  const keys = loaded.value ?? [];
  const earlier = keys.find(({ id }) => id === made?.insteadOf);
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
      {made !== undefined && <Code label="The new key, shown this once" text={made.key} />}
      {earlier !== undefined && <Earlier key={earlier.id} of={earlier} disabled={disabled} revoke={revoke} />}
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value?.length === 0 && <Empty title="The project has no key. ‘Create a key’ makes the first one." />}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="API keys"
          items={loaded.value}
          keyOf={({ id }) => id}
          columns={[
            { name: "Name", show: (key) => (isOwn(key) ? `${key.name} (this log-in’s)` : key.name) },
            { name: "Key", show: (key) => <code>{maskOf(key)}</code> },
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
                      aria-label={`What it did: ${titleOf(key, keys)}`}
                      onClick={() => trace(key.id === traced?.id ? undefined : key)}
                    >
                      What it did
                    </button>
                  )}
                  <button
                    type="button"
                    disabled={disabled}
                    aria-label={`Rotate ${titleOf(key, keys)}`}
                    onClick={() => rotate(key)}
                  >
                    Rotate
                  </button>
                  <Danger
                    disabled={disabled}
                    label={`Revoke ${titleOf(key, keys)}`}
                    onAsk={() => ask(key.id)}
                    onConfirm={() => revoke(key.id)}
                  >
                    Revoke
                  </Danger>
                </span>
              ),
            },
          ]}
        />
      )}
      {keys.some((key) => key.id === asked && isOwn(key)) && (
        <p role="status">
          You are logged in with this key: its revocation logs out everybody who has logged in with it.
        </p>
      )}
      {traced !== undefined && <Trace key={traced.id} of={traced} places={places} />}
    </>
  );
}

/** Whether somebody has logged in to this page with it. */
function isOwn(key: TeamApiKey): boolean {
  const now = session.value;
  return now.kind === "key" && now.key.mask === maskOf(key);
}

/** The key in whose place another one was made: it works until nothing uses it any more and somebody revokes it. */
function Earlier(props: {
  readonly of: TeamApiKey;
  readonly disabled: boolean;
  readonly revoke: (id: string) => void;
}) {
  const { of: key, disabled, revoke } = props;
  return (
    <div class="bar">
      <p>
        The new key may do what ‘{key.name}’ (<code>{maskOf(key)}</code>) may, for as long a time from now. Both work:
        put the new one where that one is used, and revoke that one when “Last used” stands still.
        {isOwn(key) && " You are logged in with that one: its revocation logs you out."}
      </p>
      <Danger disabled={disabled} onConfirm={() => revoke(key.id)}>
        Revoke the earlier one
      </Danger>
    </div>
  );
}

/** Stays when the key is revoked: what a leaked key has begun goes on after that. */
function Trace({
  of: { id, name },
  places: { audit },
}: {
  readonly of: Pick<TeamApiKey, "id" | "name">;
  readonly places: KeyPlaces;
}) {
  return (
    <section aria-label={`What ${name} did`}>
      <h3>What {name} did</h3>
      <p class="small">
        A key that has leaked: revoke it, then end{" "}
        {audit.path === "/audit" ? (
          <Link href={`/?key=${id}`}>the sandboxes that it created</Link>
        ) : (
          "the sandboxes that it created"
        )}
        , and look below for keys, secrets and webhooks that it made.
      </p>
      <AuditLog
        path={audit.path}
        label={`Audit log of ${name}`}
        query={{ ...audit.query, actor: id }}
        empty="The audit log has no entry of this key."
      />
    </section>
  );
}
