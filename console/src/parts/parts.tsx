/** Small parts that every screen is made of. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Failed } from "../base/failed.ts";
import { type AskedAt, outcomeOf, PAUSE_MS } from "./confirmation.ts";
import { copyText } from "./copy.ts";

/** The whole text of a failure, with the id under which the platform's log has the request. */
export function Failure({ of: error }: { readonly of: unknown }) {
  if (error === undefined) return null;
  const message = error instanceof Error ? error.message : JSON.stringify(error);
  return (
    <div class="failure" role="alert">
      <p>{message}</p>
      {error instanceof Failed && error.status > 0 && (
        <p class="small">
          {error.status} {error.code} · request_id {error.requestId ?? "none"}
        </p>
      )}
    </div>
  );
}

/** Says what is missing and what to do about it. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="strong">{title}</p>
      {children}
    </div>
  );
}

export function State({ of: state }: { readonly of: string }) {
  return <span class={`state state-${/^[a-z]+$/.test(state) ? state : "other"}`}>{state}</span>;
}

/** Text that can be copied whole. */
export function Code({ text, label }: { readonly text: string; readonly label: string }) {
  const [copied, setCopied] = useState("Copy");
  const copy = () =>
    void copyText(text).then(
      () => setCopied("Copied"),
      (error: unknown) => setCopied(error instanceof Error ? error.message : String(error)),
    );
  return (
    <figure class="code">
      <figcaption>
        {label}
        <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${label}`}>
          {copied}
        </button>
      </figcaption>
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
    </figure>
  );
}

/**
 * A button for what cannot be taken back: the first press asks, and a second one acts that is not part of a double click.
 * A key that is held is one press.
 */
export function Danger(props: {
  readonly children: string;
  readonly onConfirm: () => void;
  /** The question is asked: the screen shows what it means. */
  readonly onAsk?: () => void;
  readonly disabled?: boolean;
  readonly label?: string;
}) {
  const { children, onConfirm, onAsk, disabled = false, label } = props;
  const [askedAt, setAskedAt] = useState<AskedAt>(undefined);
  const [takesAnswer, setTakesAnswer] = useState(false);
  const asked = askedAt !== undefined;
  const forget = () => setAskedAt(undefined);
  useEffect(() => {
    setTakesAnswer(false);
    if (!asked) return undefined;
    const timer = setTimeout(() => setTakesAnswer(true), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [asked]);
  // A button that is switched off loses the focus without telling, and may come back for other objects.
  useEffect(() => {
    if (disabled) forget();
  }, [disabled]);
  const press = (event: MouseEvent & { readonly currentTarget: HTMLButtonElement }) => {
    // Not every browser gives focus to a button that is clicked, and its loss takes the question back.
    event.currentTarget.focus();
    const outcome = outcomeOf(askedAt, { at: event.timeStamp, inSeries: event.detail });
    if (outcome === "nothing") return;
    setAskedAt(outcome === "asks" ? event.timeStamp : undefined);
    if (outcome === "acts") onConfirm();
    else onAsk?.();
  };
  return (
    <button
      type="button"
      class={asked ? "danger asked" : "danger"}
      disabled={disabled}
      aria-disabled={asked && !takesAnswer ? true : undefined}
      aria-label={asked ? undefined : label}
      onClick={press}
      onKeyDown={(event) => {
        if (event.key === "Escape") forget();
        if (event.key === "Enter" && event.repeat) event.preventDefault();
      }}
      onBlur={forget}
    >
      {asked ? `Really ${children.toLowerCase()}?` : children}
    </button>
  );
}

interface Column<T> {
  readonly name: string;
  readonly show: (item: T) => ComponentChildren;
}

export function Table<T>(props: {
  readonly label: string;
  readonly items: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly keyOf: (item: T) => string;
}) {
  const { label, items, columns, keyOf } = props;
  return (
    <div class="table" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={keyOf(item)}>
              {columns.map(({ name, show }) => (
                <td key={name}>{show(item)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A screen's heading with its acts. */
export function Screen(props: {
  readonly title: ComponentChildren;
  readonly acts?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <>
      <header class="screen">
        <h1>{props.title}</h1>
        <div class="acts">{props.acts}</div>
      </header>
      {props.children}
    </>
  );
}
