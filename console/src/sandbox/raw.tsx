/** The sandbox as the API has it, and the code that goes on with it. */

import { FromEnvironment, withoutSecrets } from "../base/without-secrets.ts";
import { Code } from "../parts/parts.tsx";
import { connectCode } from "../sandboxes/sdk-code.ts";
import type { TabProps } from "./tab.ts";

export function RawTab({ sandbox }: TabProps) {
  const code = connectCode(sandbox.sandboxID);
  return (
    <div class="beside">
      <Code label="JSON" text={JSON.stringify(withoutSecrets(sandbox, ""), shownSecret, 2)} />
      <div>
        <Code label="svc" text={`svc sandbox info ${sandbox.sandboxID} -o json`} />
        <Code label="TypeScript" text={code.typescript} />
        <Code label="Python" text={code.python} />
        <Code label="HTTP" text={`curl -H "X-API-Key: $SVC_API_KEY" "$SVC_API_URL/sandboxes/${sandbox.sandboxID}"`} />
      </div>
    </div>
  );
}

function shownSecret(_name: string, value: unknown): unknown {
  return value instanceof FromEnvironment ? "(not shown)" : value;
}
