/** Entries of the audit log: who did what, from where, and with which result. */

import { Link } from "wouter-preact";
import type { AuditEntry } from "../../../shared/api/audit.ts";
import type { TeamApiKey } from "../../../shared/api/teams.ts";
import { get } from "../base/client.ts";
import { pairs, time } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import { Empty, Failure, Table } from "./parts.tsx";
import { type KeyNames, namesOf, whoDid } from "./who.ts";

const NEWEST = 100;
const NO_NAMES: KeyNames = new Map();

/** The newest entries of a project's log, or of the platform's (`/admin/audit`). */
export function AuditLog(props: {
  readonly path: "/audit" | "/admin/audit";
  readonly label: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  /** Said where there is no entry. */
  readonly empty: string;
  /** Loads again when one of them changes. */
  readonly needs?: readonly unknown[];
}) {
  const { path, label, query = {}, empty, needs = [] } = props;
  const loaded = useLoaded(
    (signal) => get<AuditEntry[]>(path, { limit: NEWEST, ...query }, signal),
    [path, JSON.stringify(query), ...needs],
  );
  const isOfProject = path === "/audit";
  // Where they cannot be read, the masks say enough.
  const { value: names = NO_NAMES } = useLoaded(
    (signal) => (isOfProject ? readNames(signal) : Promise.resolve(NO_NAMES)),
    [isOfProject, ...needs],
  );
  return (
    <>
      <Failure of={loaded.error} />
      {loaded.value?.length === 0 && <Empty title={empty} />}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label={label}
          items={loaded.value}
          keyOf={({ seq }) => String(seq)}
          columns={[
            { name: "When", show: ({ at }) => time(at) },
            { name: "Who", show: ({ actor }) => whoDid(actor, names) },
            { name: "What", show: ({ action }) => action },
            { name: "Of", show: ({ object }) => <Thing of={object} isOfProject={isOfProject} /> },
            { name: "Result", show: ({ result, errorCode }) => [result, errorCode].filter(Boolean).join(" ") },
            { name: "From", show: ({ address }) => address ?? "–" },
            { name: "More", show: ({ details }) => pairs(details) || "–" },
          ]}
        />
      )}
    </>
  );
}

async function readNames(signal: AbortSignal): Promise<KeyNames> {
  const [keys, changes] = await Promise.all([
    get<TeamApiKey[]>("/api-keys", {}, signal),
    get<AuditEntry[]>("/audit", { objectKind: "key", limit: NEWEST }, signal),
  ]);
  return namesOf(keys, changes);
}

/** Of the log of all projects a sandbox is no link: its screen is that of the chosen project. */
function Thing({
  of: { kind, id },
  isOfProject,
}: {
  readonly of: AuditEntry["object"];
  readonly isOfProject: boolean;
}) {
  if (kind !== "sandbox" || id === null || !isOfProject) return <>{[kind, id].filter(Boolean).join(" ")}</>;
  return (
    <>
      sandbox <Link href={`/sandboxes/${encodeURIComponent(id)}`}>{id}</Link>
    </>
  );
}
