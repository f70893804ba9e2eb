/** What was done on this page, each act as code. */

import { time } from "../base/format.ts";
import { performed } from "../base/performed.ts";
import { Empty, Screen } from "../parts/parts.tsx";
import { AsCode } from "./as-code.tsx";
import { codeOf } from "./code-of.ts";

export function DoneScreen() {
  const acts = performed.value.flatMap(({ request, at }) => {
    const code = codeOf(request);
    return code === undefined ? [] : [{ request, at, title: code.title }];
  });
  return (
    <Screen title="Done here">
      {acts.length === 0 && (
        <Empty title="Nothing was done yet.">
          <p>What you do in the console is listed here as code, until the page is loaded again.</p>
        </Empty>
      )}
      <ul class="tree" aria-label="Acts">
        {acts.map(({ request, at, title }) => (
          <li key={`${at} ${title}`}>
            <time>{time(new Date(at).toISOString())}</time>
            <AsCode of={request} label={title} />
          </li>
        ))}
      </ul>
    </Screen>
  );
}
