/** The limits of a project, beside what it uses of them. */

import type { ComponentChildren } from "preact";
import type { projectApi } from "../../../shared/api/projects/projects.ts";
import { get, type Reply } from "../base/client.ts";
import { useLoaded } from "../base/loaded.ts";
import { Failure, Table } from "../parts/parts.tsx";

type Answer = Reply<typeof projectApi.projectLimits>;
export type Limits = Answer["limits"];

export function LimitTable(props: {
  /** Of the route that has the limits. */
  readonly path: string;
  /** The form in which an operator changes the limits; absent for everybody else. */
  readonly children?: (limits: Limits, again: () => void) => ComponentChildren;
}) {
  const { path, children } = props;
  const loaded = useLoaded((signal) => get<Answer>(path, {}, signal), [path], 10_000);
  const found = loaded.value;
  return (
    <>
      <h2>Limits and use</h2>
      <Failure of={loaded.error} />
      {found !== undefined && (
        <>
          <Table
            label="Limits and use"
            items={Object.entries(found.limits)}
            keyOf={([name]) => name}
            columns={[
              { name: "Of", show: ([name]) => name },
              { name: "Used", show: ([, { used }]) => used ?? "each sandbox" },
              { name: "Limit", show: ([, { limit }]) => limit ?? "none" },
              { name: "Whose", show: ([, { own }]) => (own ? "the project's own" : "the platform's") },
            ]}
          />
          {children?.(found.limits, loaded.again) ?? <p class="small">More is given by {found.contact}.</p>}
        </>
      )}
    </>
  );
}
