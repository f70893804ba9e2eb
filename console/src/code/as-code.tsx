/** An act as code, ready to copy; shown when somebody opens it. */

import { useState } from "preact/hooks";
import type { ActRequest } from "../base/performed.ts";
import { Choice } from "../parts/field.tsx";
import { Code } from "../parts/parts.tsx";
import { codeOf } from "./code-of.ts";

export function AsCode({ of: request, label = "As code" }: { readonly of: ActRequest; readonly label?: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="as-code" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{label}</summary>
      {isOpen && <ActCodes of={request} />}
    </details>
  );
}

/** Several acts, of which one is chosen. */
export function ActsAsCode({ of: acts }: { readonly of: readonly (readonly [name: string, request: ActRequest])[] }) {
  const [isOpen, setOpen] = useState(false);
  const [chosen, choose] = useState("0");
  const request = (acts[Number(chosen)] ?? acts[0])?.[1];
  return (
    <details class="as-code" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Acts as code</summary>
      {isOpen && (
        <Choice
          label="Act"
          value={chosen}
          options={acts.map(([name], index) => [String(index), name] as const)}
          onValue={choose}
        />
      )}
      {isOpen && request !== undefined && <ActCodes of={request} />}
    </details>
  );
}

function ActCodes({ of: request }: { readonly of: ActRequest }) {
  const code = codeOf(request);
  if (code === undefined) return null;
  return (
    <div class="codes">
      {code.svc !== undefined && <Code label="svc" text={code.svc} />}
      <Code label="TypeScript" text={code.typescript} />
      <Code label="Python" text={code.python} />
      <Code label="HTTP" text={code.http} />
    </div>
  );
}
