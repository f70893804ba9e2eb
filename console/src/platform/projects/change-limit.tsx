/** Changes a limit of a project, or gives it back to the platform; says beforehand what that means. */

import { useState } from "preact/hooks";
import { act } from "../../base/client.ts";
import { useDoing } from "../../base/loaded.ts";
import { Choice, onSubmit, TextField } from "../../parts/field.tsx";
import { Failure } from "../../parts/parts.tsx";
import type { Limits } from "../../project/limits.tsx";
import { limitChange, limitMeaning } from "./words.ts";

export function ChangeLimit({
  limits,
  path,
  again,
}: {
  readonly limits: Limits;
  readonly path: string;
  readonly again: () => void;
}) {
  const [name, setName] = useState("sandboxes");
  const [text, setText] = useState("");
  const [note, setNote] = useState("");
  const doing = useDoing();
  const change = () =>
    doing.run(async () => {
      setNote("");
      await act("PATCH", path, { limits: limitChange(name, text) });
      setNote("Changed.");
      setText("");
      again();
    });
  return (
    <>
      <form class="bar" aria-label="Change a limit" onSubmit={onSubmit(change)}>
        <Choice
          label="Limit"
          value={name}
          options={Object.keys(limits).map((each) => [each, each] as const)}
          onValue={setName}
        />
        <TextField label="At most (empty: the platform’s)" type="number" value={text} onValue={setText} />
        <button type="submit" disabled={doing.busy}>
          Change the limit
        </button>
        <span class="small" role="status">
          {note}
        </span>
      </form>
      <p class="small">{limitMeaning(name, limits, text)}</p>
      <Failure of={doing.error} />
    </>
  );
}
