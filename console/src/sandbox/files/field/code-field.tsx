/** A field for the text of a file. Its code comes when a file is opened first; where it cannot be had, the browser's own field does. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { TextArea } from "../../../parts/field.tsx";
import { loadPart } from "../../../parts/load-part.ts";
import { Failure } from "../../../parts/parts.tsx";
import type { CodeField as Field } from "./code-mirror.ts";

interface CodeFieldProps {
  readonly path: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly onSave: () => void;
}

export function CodeField(props: CodeFieldProps) {
  const { path, text, onText } = props;
  const place = useRef<HTMLDivElement>(null);
  const field = useRef<Field | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const [isOpen, setOpen] = useState(false);
  const [showsInvisible, setShowsInvisible] = useState(true);
  const [error, setError] = useState<unknown>(undefined);
  useEffect(() => {
    const left = { is: false };
    loadPart(() => import("./code-mirror.ts"))
      .then(({ openField }) => {
        if (left.is || place.current === null) return;
        field.current = openField(place.current, {
          path,
          text: latest.current.text,
          changed: (now) => latest.current.onText(now),
          save: () => latest.current.onSave(),
          showsInvisible: setShowsInvisible,
        });
        setOpen(true);
      })
      .catch((failed: unknown) => {
        if (!left.is) setError(failed);
      });
    return () => {
      left.is = true;
      field.current?.close();
      field.current = undefined;
    };
  }, [path]);
  // Before the next key: an effect after the picture would put back a text that the user has typed on from.
  useLayoutEffect(() => field.current?.set(text), [text]);
  if (error !== undefined)
    return (
      <>
        <Failure of={error} />
        <TextArea label={path} value={text} onValue={onText} rows={20} />
      </>
    );
  return (
    <div class="field">
      <span>{path}</span>
      {!isOpen && <span role="status">loading …</span>}
      <div ref={place} />
      {!showsInvisible && (
        <p class="small" role="status">
          The file has so many invisible characters that they are not shown.
        </p>
      )}
    </div>
  );
}
