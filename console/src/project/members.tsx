/** The members of the project: the settings' rules give each one a role, and the sessions show who is logged in. */

import { API, jsonOf, send } from "../base/client.ts";
import { time } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import { Failure, Table } from "../parts/parts.tsx";

/** What the console's own route answers. */
interface Members {
  /** Null: the platform has no provider of log-ins, so keys alone log in. */
  readonly claim: string | null;
  readonly rules: readonly { readonly value: string; readonly role: string }[];
  readonly people: readonly {
    readonly subject: string;
    readonly name: string;
    readonly scopes: readonly string[];
    readonly sessions: number;
    readonly loggedInAt: string;
    readonly lastUsedAt: string;
  }[];
}

/** @param props.teamID the project; absent: the one that the other screens show */
export function MembersOfProject({ teamID }: { readonly teamID?: string }) {
  const loaded = useLoaded((signal) => membersOf(teamID, signal), [teamID], 30_000);
  const members = loaded.value;
  return (
    <>
      <h2>Members</h2>
      <Failure of={loaded.error} />
      {members?.claim === null && (
        <p class="small">
          Nobody logs in by name: the operator has set no provider of log-ins (<code>SVC_OIDC_ISSUER</code>). Who has an
          API key of the project may do what the key may do.
        </p>
      )}
      {members !== undefined && members.claim !== null && <Shown {...members} claim={members.claim} />}
    </>
  );
}

function Shown({ claim, rules, people }: Members & { readonly claim: string }) {
  return (
    <>
      {rules.length === 0 && (
        <p class="small">
          No rule of <code>SVC_OIDC_ROLES</code> names this project, so nobody logs in to it by name.
        </p>
      )}
      {rules.length > 0 && (
        <Table
          label="Rules of roles"
          items={rules}
          keyOf={({ value, role }) => [value, role].join(" ")}
          columns={[
            { name: `Whose ‘${claim}’ has`, show: ({ value }) => <code>{value}</code> },
            { name: "Is", show: ({ role }) => role },
          ]}
        />
      )}
      {people.length === 0 && <p class="small">Nobody is logged in by name.</p>}
      {people.length > 0 && (
        <Table
          label="Members who are logged in"
          items={people}
          keyOf={({ subject }) => subject}
          columns={[
            { name: "Name", show: ({ name }) => name },
            { name: "Id at the provider", show: ({ subject }) => <code>{subject}</code> },
            { name: "May", show: ({ scopes }) => scopes.join(", ") },
            { name: "Sessions", show: ({ sessions }) => sessions },
            { name: "Logged in", show: ({ loggedInAt }) => time(loggedInAt) },
            { name: "Last seen", show: ({ lastUsedAt }) => time(lastUsedAt) },
          ]}
        />
      )}
    </>
  );
}

async function membersOf(teamID: string | undefined, signal: AbortSignal): Promise<Members> {
  const headers = teamID === undefined ? {} : { "x-team-id": teamID };
  return jsonOf<Members>(await send("GET", `${API}/members`, { headers, signal }));
}
