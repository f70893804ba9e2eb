/**
 * The rows of the list. Only those in view and a few beyond are in the page, and their elements are used again, so ten thousand
 * scroll like ten.
 */

import { Component } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation, useRouter } from "wouter-preact";
import { pairs, span, time } from "../base/format.ts";
import { State } from "../parts/parts.tsx";
import type { SandboxRow } from "./live.ts";
import { inView, reassigned, type Slots } from "./slots.ts";

const ROW_PX = 36;
/** Rows outside of the view on each side: the browser scrolls by as much before the page has drawn. */
const BEYOND = 6;
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
  const [view, setView] = useState({ first: 0, count: 2 * BEYOND });
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const element = list.current;
    if (element === null) return undefined;
    const look = () => {
      const { scrollTop, clientHeight: height } = element;
      const { first, count } = inView({ scrollTop, height, rowHeight: ROW_PX }, BEYOND);
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
  const first = Math.min(view.first, Math.max(0, items.length - view.count));
  const shown = items.slice(first, first + view.count);
  const slots = useRef<Slots>(new Map());
  slots.current = reassigned(
    slots.current,
    shown.map(({ sandboxID }) => sandboxID),
  );
  const focus = useFocus(list, slots);
  const { base } = useRouter();
  const go = useClicks(base);
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
    <div
      class="rows"
      ref={list}
      role="table"
      aria-label="Sandboxes"
      aria-rowcount={items.length + 1}
      tabIndex={0}
      onClick={go}
      {...focus}
    >
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
        {shown.map((item, index) => (
          <Row
            key={slots.current.get(item.sandboxID)}
            item={item}
            index={first + index}
            isChosen={chosen.has(item.sandboxID)}
            toggle={toggle}
            now={now}
            base={base}
          />
        ))}
      </div>
    </div>
  );
}

/** Follows links of rows within the page. One listener, because a component for each link costs more than the rest of its row. */
function useClicks(base: string): (event: MouseEvent) => void {
  const [, go] = useLocation();
  return (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isOther = event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (link === null || isOther) return;
    event.preventDefault();
    go(link.pathname.slice(base.length));
  };
}

/** A row that leaves the view gives focus to the list: the next row in its element is another sandbox. */
function useFocus(list: { readonly current: HTMLElement | null }, slots: { readonly current: Slots }) {
  const focused = useRef<string | undefined>(undefined);
  useLayoutEffect(() => {
    if (focused.current !== undefined && !slots.current.has(focused.current))
      list.current?.focus({ preventScroll: true });
  });
  return {
    onFocusIn: ({ target }: FocusEvent) => {
      const row = target instanceof Element ? target.closest<HTMLElement>("[data-id]") : null;
      focused.current = row?.dataset["id"];
    },
    onFocusOut: () => {
      focused.current = undefined;
    },
  };
}

interface RowProps {
  readonly item: SandboxRow;
  readonly index: number;
  readonly isChosen: boolean;
  readonly toggle: (id: string) => void;
  readonly now: number;
  readonly base: string;
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

  override render({ item, index, isChosen, toggle, now, base }: RowProps) {
    const { sandboxID: id, state, alias, templateID, startedAt, endAt, metadata } = item;
    return (
      <div
        class="row"
        role="row"
        aria-rowindex={index + 2}
        data-id={id}
        style={{ transform: `translateY(${index * ROW_PX}px)` }}
      >
        <span role="cell">
          <input type="checkbox" aria-label={`Choose ${id}`} checked={isChosen} onChange={() => toggle(id)} />
        </span>
        <span role="cell">
          <a href={`${base}/sandboxes/${id}`}>{id}</a>
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
