/** Where a secret goes: the hosts that get it by the rules of sandboxes, and its last uses. */

import { Link } from "wouter-preact";
import type { SandboxDetail } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { get } from "../base/client.ts";
import { Failed } from "../base/failed.ts";
import { useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { AuditLog } from "../parts/audit-log.tsx";
import { Failure, Table } from "../parts/parts.tsx";
import type { SandboxRow } from "../sandboxes/live.ts";
import { hostsOf } from "./secret-hosts.ts";

/** Sandboxes whose rules are read: each is a request. */
const NEWEST = 50;
const AT_ONCE = 5;

export function SecretPlaces({ name }: { readonly name: string }) {
  const mayRead = may("sandboxes");
  const loaded = useLoaded(
    async (signal) => (mayRead ? hostsOf(name, await newestSandboxes(signal)) : []),
    [name, mayRead],
  );
  return (
    <section aria-label={`Where ${name} goes`}>
      <h2>Where {name} goes</h2>
      <p class="small">
        {mayRead
          ? `By the rules of the project's newest ${NEWEST} sandboxes. A sandbox that is created with another rule can send it elsewhere.`
          : "Rules are shown to keys that may set them: this one lacks the scope ‘sandboxes’."}
      </p>
      <Failure of={loaded.error} />
      {mayRead && loaded.value?.length === 0 && <p class="small">No rule of theirs names it.</p>}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label={`Hosts that get ${name}`}
          items={loaded.value}
          keyOf={({ host }) => host}
          columns={[
            { name: "Host", show: ({ host }) => <code>{host}</code> },
            { name: "In", show: ({ headers }) => headers.join(", ") },
            {
              name: "From",
              show: ({ sandboxes }) =>
                sandboxes.map((id) => (
                  <Link key={id} href={`/sandboxes/${id}/network`}>
                    {id}{" "}
                  </Link>
                )),
            },
          ]}
        />
      )}
      {may("admin") && (
        <>
          <h3>Sandboxes that used it</h3>
          <AuditLog
            path="/audit"
            label={`Uses of ${name}`}
            query={{ object: name, objectKind: "secret" }}
            empty="The audit log has no use of it."
          />
        </>
      )}
    </section>
  );
}

async function newestSandboxes(signal: AbortSignal): Promise<SandboxDetail[]> {
  const rows = await get<SandboxRow[]>("/rows", { limit: NEWEST }, signal);
  const found: SandboxDetail[] = [];
  for (let first = 0; first < rows.length; first += AT_ONCE) {
    const read = await Promise.all(
      rows.slice(first, first + AT_ONCE).map(({ sandboxID }) => detailOf(sandboxID, signal)),
    );
    found.push(...read.flatMap((each) => (each === undefined ? [] : [each])));
  }
  return found;
}

/** Undefined: the sandbox has ended meanwhile, and the platform may have forgotten it. */
async function detailOf(id: string, signal: AbortSignal): Promise<SandboxDetail | undefined> {
  try {
    const sandbox = await get<SandboxDetail>(`/sandboxes/${id}`, { ended: true }, signal);
    return sandbox.state === "ended" ? undefined : sandbox;
  } catch (error) {
    if (error instanceof Failed && error.status === 404) return undefined;
    throw error;
  }
}
