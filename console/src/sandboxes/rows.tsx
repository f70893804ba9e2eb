/** The rows of the list. Only those in view and a few beyond are in the page, so ten thousand scroll like ten. */

import { Component } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { pairs, span, time } from "../base/format.ts";
import { State } from "../parts/parts.tsx";
import type { SandboxRow } from "./live.ts";

const ROW_PX = 36;
/** Rows come and go so many at a time: a scroll between two steps draws nothing. */
const STEP = 8;
/** Time between two looks at how long sandboxes have left. */
const TICK_MS = 5_000;

type Choose = (change: (chosen: ReadonlySet<string>) => ReadonlySet<string>) => void;

export function Rows(props: {
  readonly items: readonly SandboxRow[];
  readonly chosen: ReadonlySet<string>;
  readonly choose: Choose;
}) {
  const { items, chosen, choose } = props;
  const list = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ first: 0, count: 4 * STEP });
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const element = list.current;
    if (element === null) return undefined;
    const look = () => {
      const first = Math.max(0, (Math.floor(element.scrollTop / ROW_PX / STEP) - 1) * STEP);
      const count = (Math.ceil(element.clientHeight / ROW_PX / STEP) + 3) * STEP;
      setView((old) => (old.first === first && old.count === count ? old : { first, count }));
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    const resized = new ResizeObserver(look);
    resized.observe(element);
    const ticking = setInterval(() => document.hidden || setNow(Date.now()), TICK_MS);
    return () => {
      element.removeEventListener("scroll", look);
      resized.disconnect();
      clearInterval(ticking);
    };
  }, []);
  const allChosen = useMemo(
    () => items.length > 0 && chosen.size >= items.length && items.every(({ sandboxID }) => chosen.has(sandboxID)),
    [items, chosen],
  );
  const toggle = useCallback(
    (id: string) =>
      choose((before) => {
        const next = new Set(before);
        if (!next.delete(id)) next.add(id);
        return next;
      }),
    [choose],
  );
  return (
    <div class="rows" ref={list} role="table" aria-label="Sandboxes" aria-rowcount={items.length + 1} tabIndex={0}>
      <div class="row head" role="row" aria-rowindex={1}>
        <span role="columnheader">
          <input
            type="checkbox"
            aria-label="Choose all"
            checked={allChosen}
            onChange={() => choose(() => new Set(allChosen ? [] : items.map(({ sandboxID }) => sandboxID)))}
          />
        </span>
        {["Sandbox", "State", "Template", "Started", "Ends", "Labels"].map((name) => (
          <span key={name} role="columnheader">
            {name}
          </span>
        ))}
      </div>
      <div role="rowgroup" class="all" style={{ height: `${items.length * ROW_PX}px` }}>
        {items.slice(view.first, view.first + view.count).map((item, index) => (
          <Row
            key={item.sandboxID}
            item={item}
            index={view.first + index}
            isChosen={chosen.has(item.sandboxID)}
            toggle={toggle}
            now={now}
          />
        ))}
      </div>
    </div>
  );
}

interface RowProps {
  readonly item: SandboxRow;
  readonly index: number;
  readonly isChosen: boolean;
  readonly toggle: (id: string) => void;
  readonly now: number;
}

/** Drawn again only when something of it has changed. */
class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const { item, index, isChosen, toggle, now } = this.props;
    return (
      item !== next.item ||
      index !== next.index ||
      isChosen !== next.isChosen ||
      toggle !== next.toggle ||
      now !== next.now
    );
  }

  override render({ item, index, isChosen, toggle, now }: RowProps) {
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
        <span role="cell">{time(startedAt, now)}</span>
        <span role="cell">{state === "paused" ? "–" : `in ${span(Date.parse(endAt) - now)}`}</span>
        <span role="cell" class="cut">
          {pairs(metadata)}
        </span>
      </div>
    );
  }
}
