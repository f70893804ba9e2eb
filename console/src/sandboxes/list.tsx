/** The live list of sandboxes, its filter, and what is done with those that are chosen. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { Link, useSearchParams } from "wouter-preact";
import { useDoing } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { Choice, TextField } from "../parts/field.tsx";
import { Danger, Empty, Failure, Screen } from "../parts/parts.tsx";
import { killSandbox, pauseSandbox, resumeSandbox, withEach } from "./acts.ts";
import { useCreatedBy } from "./created-by.ts";
import { EVERY, type Filter, filtered } from "./filter.ts";
import { failure, followSandboxes, isLive, isWhole, known } from "./live.ts";
import { useOnNode } from "./on-node.ts";
import { Rows } from "./rows.tsx";
import { UseTable } from "./use-table.tsx";

/** The same in every drawing. */
const NONE: ReadonlySet<string> = new Set();

export function SandboxesScreen() {
  const [filter, setFilter] = useState<Filter>(EVERY);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isUse, setUse] = useState(false);
  const doing = useDoing();
  useEffect(followSandboxes, []);
  const all = known.value;
  const placed = useOnNode(filter.node);
  const { ids: onNode } = placed;
  const key = useSearchParams()[0].get("key");
  const created = useCreatedBy(key);
  const byKey = key === null ? undefined : (created.ids ?? NONE);
  const shown = useMemo(
    () => filtered(all.values(), filter, { now: Date.now(), onNode, only: byKey }),
    [all, filter, onNode, byKey],
  );
  const ids = shown.filter(({ sandboxID }) => chosen.has(sandboxID)).map(({ sandboxID }) => sandboxID);
  const each = (work: (id: string) => Promise<void>) => () =>
    doing.run(async () => {
      await withEach(ids, work);
      setChosen(new Set());
    });
  const mayAct = may("sandboxes") && ids.length > 0 && !doing.busy;
  return (
    <Screen
      title="Sandboxes"
      acts={
        <>
          <button type="button" aria-pressed={isUse} onClick={() => setUse(!isUse)}>
            Use of memory
          </button>
          <Link href="/create" class="button main">
            Create a sandbox
          </Link>
        </>
      }
    >
      <div class="bar">
        <TextField
          label="Filter"
          type="search"
          placeholder="id, template, label=value"
          value={filter.text}
          onValue={(text) => setFilter({ ...filter, text })}
        />
        <Choice
          label="State"
          value={filter.state}
          options={[
            ["", "any"],
            ["running", "running"],
            ["paused", "paused"],
          ]}
          onValue={(state) => setFilter({ ...filter, state })}
        />
        <Choice
          label="Age"
          value={filter.age}
          options={[
            ["", "any"],
            ["-10", "under 10 minutes"],
            ["-60", "under an hour"],
            ["10", "over 10 minutes"],
            ["60", "over an hour"],
            ["1440", "over a day"],
          ]}
          onValue={(age) => setFilter({ ...filter, age })}
        />
        {placed.nodes.length > 0 && (
          <Choice
            label="Node"
            value={filter.node}
            options={[["", "any"], ...placed.nodes.map((node) => [node, node] as const)]}
            onValue={(node) => setFilter({ ...filter, node })}
          />
        )}
        <div class="acts">
          <button type="button" disabled={!mayAct} onClick={each(pauseSandbox)}>
            Pause
          </button>
          <button type="button" disabled={!mayAct} onClick={each(resumeSandbox)}>
            Resume
          </button>
          <Danger disabled={!mayAct} onConfirm={each(killSandbox)}>
            Kill
          </Danger>
        </div>
      </div>
      <p class="small" role="status">
        {shown.length} of {all.size}
        {isWhole.value ? "" : " so far"}, {ids.length} chosen, {isLive.value ? "live" : "connecting …"}
      </p>
      <p class="small">
        Ended ones are among the <Link href="/events">events</Link>, and Ctrl K opens one by its id.
      </p>
      {key !== null && (
        <p>
          Only those that the key <code>{key}</code> created, by the audit log; their forks are not among them.{" "}
          <Link href="/">Show all</Link>
        </p>
      )}
      <Failure of={failure.value ?? placed.error ?? created.error ?? doing.error} />
      {isUse && <UseTable of={shown} filter={filter} />}
      {all.size === 0 && isWhole.value ? (
        <Empty title="No sandbox runs or is paused.">
          <p>
            <Link href="/create">Create one here</Link>, or with an SDK: <code>await Sandbox.create()</code>.
          </p>
        </Empty>
      ) : (
        <Rows items={shown} chosen={chosen} choose={setChosen} />
      )}
    </Screen>
  );
}
