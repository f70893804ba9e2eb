/** What depends on an object that somebody is about to delete: shown beside the question. */

import type { ComponentChildren } from "preact";
import { Link } from "wouter-preact";
import { time } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import { Failure, State, Table } from "../parts/parts.tsx";
import type { Dependent } from "./dependents.ts";

export function DependsOn(props: {
  readonly name: string;
  readonly load: (signal: AbortSignal) => Promise<readonly Dependent[]>;
  /** What a deletion means for them. */
  readonly children: ComponentChildren;
}) {
  const { name, load, children } = props;
  const { value: found, error } = useLoaded(load, [name]);
  return (
    <section aria-label={`What depends on ${name}`}>
      <h2>What depends on {name}</h2>
      <p class="small">{children}</p>
      <Failure of={error} />
      {found === undefined && error === undefined && (
        <p class="small" role="status">
          loading …
        </p>
      )}
      {found?.length === 0 && <p class="small">No sandbox of the project that runs or is paused.</p>}
      {found !== undefined && found.length > 0 && (
        <Table
          label={`Sandboxes that depend on ${name}`}
          items={found}
          keyOf={({ sandboxID }) => sandboxID}
          columns={[
            {
              name: "Sandbox",
              show: ({ sandboxID: id }) => <Link href={`/sandboxes/${id}`}>{id}</Link>,
            },
            { name: "State", show: ({ state }) => <State of={state} /> },
            { name: "Started", show: ({ startedAt }) => time(startedAt) },
          ]}
        />
      )}
    </section>
  );
}
