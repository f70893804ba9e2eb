/** The live list of sandboxes. Only the rows in view are in the page, so ten thousand scroll like ten. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { ListedSandbox } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { pairs, span, time } from "../base/format.ts";
import { useDoing } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { Choice, TextField } from "../parts/field.tsx";
import { Danger, Empty, Failure, Screen, State } from "../parts/parts.tsx";
import { killSandbox, pauseSandbox, resumeSandbox, withEach } from "./acts.ts";
import { EVERY, type Filter, filtered } from "./filter.ts";
import { failure, followSandboxes, isLive, isWhole, known } from "./live.ts";

const ROW_PX = 36;
/** Rows beyond both edges, so that a fast scroll shows no gap. */
const BEYOND = 10;

export function SandboxesScreen() {
  const [filter, setFilter] = useState<Filter>(EVERY);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const doing = useDoing();
  useEffect(followSandboxes, []);
  const all = known.value;
  const shown = useMemo(() => filtered(all.values(), filter, Date.now()), [all, filter]);
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
        <Link href="/create" class="button main">
          Create a sandbox
        </Link>
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
          value={filter.olderThan}
          options={[
            ["", "any"],
            ["10", "over 10 minutes"],
            ["60", "over an hour"],
            ["1440", "over a day"],
          ]}
          onValue={(olderThan) => setFilter({ ...filter, olderThan })}
        />
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
      <Failure of={failure.value ?? doing.error} />
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

function Rows(props: {
  readonly items: readonly ListedSandbox[];
  readonly chosen: ReadonlySet<string>;
  readonly choose: (ids: ReadonlySet<string>) => void;
}) {
  const { items, chosen, choose } = props;
  const list = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  useEffect(() => {
    const element = list.current;
    if (element === null) return undefined;
    const look = () => setView({ top: element.scrollTop, height: element.clientHeight });
    look();
    element.addEventListener("scroll", look, { passive: true });
    const resized = new ResizeObserver(look);
    resized.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      resized.disconnect();
    };
  }, []);
  const first = Math.max(0, Math.floor(view.top / ROW_PX) - BEYOND);
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / ROW_PX) + BEYOND);
  const allChosen = items.length > 0 && items.every(({ sandboxID }) => chosen.has(sandboxID));
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    choose(next);
  };
  return (
    <div class="rows" ref={list} role="table" aria-label="Sandboxes" aria-rowcount={items.length + 1} tabIndex={0}>
      <div class="row head" role="row" aria-rowindex={1}>
        <span role="columnheader">
          <input
            type="checkbox"
            aria-label="Choose all"
            checked={allChosen}
            onChange={() => choose(new Set(allChosen ? [] : items.map(({ sandboxID }) => sandboxID)))}
          />
        </span>
        {["Sandbox", "State", "Template", "Started", "Ends", "Labels"].map((name) => (
          <span key={name} role="columnheader">
            {name}
          </span>
        ))}
      </div>
      <div role="rowgroup" class="all" style={{ height: `${items.length * ROW_PX}px` }}>
        {items.slice(first, last).map((item, index) => (
          <Row
            key={item.sandboxID}
            item={item}
            index={first + index}
            isChosen={chosen.has(item.sandboxID)}
            toggle={toggle}
          />
        ))}
      </div>
    </div>
  );
}

function Row(props: {
  readonly item: ListedSandbox;
  readonly index: number;
  readonly isChosen: boolean;
  readonly toggle: (id: string) => void;
}) {
  const { item, index, isChosen, toggle } = props;
  const { sandboxID: id, state, alias, templateID, startedAt, endAt, metadata } = item;
  return (
    <div class="row" role="row" aria-rowindex={index + 2} style={{ transform: `translateY(${index * ROW_PX}px)` }}>
      <span role="cell">
        <input type="checkbox" aria-label={`Choose ${id}`} checked={isChosen} onChange={() => toggle(id)} />
      </span>
      <span role="cell">
        <Link href={`/sandboxes/${id}`}>{id}</Link>
      </span>
      <span role="cell">
        <State of={state} />
      </span>
      <span role="cell">{alias ?? templateID}</span>
      <span role="cell">{time(startedAt)}</span>
      <span role="cell">{state === "paused" ? "–" : `in ${span(Date.parse(endAt) - Date.now())}`}</span>
      <span role="cell" class="cut">
        {pairs(metadata)}
      </span>
    </div>
  );
}
