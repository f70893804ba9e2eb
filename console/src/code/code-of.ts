/** Any act of the console as code: `svc`, the SDKs and HTTP, with the ids of the act and without a secret. Pure. */

import type { ActRequest } from "../base/performed.ts";
import { withoutSecrets } from "../base/without-secrets.ts";
import { type Act, Body } from "./act.ts";
import { PLATFORM_ACTS } from "./platform-acts.ts";
import { PROJECT_ACTS } from "./project-acts.ts";
import { curlOf, fetchOf, httpxOf } from "./requests.ts";
import { SANDBOX_ACTS } from "./sandbox-acts.ts";
import { VOLUME_ACTS } from "./volume-acts.ts";

export interface ActCode {
  /** What the act does, with its ids. */
  readonly title: string;
  /** Undefined: `svc` has no command for it. */
  readonly svc: string | undefined;
  readonly typescript: string;
  readonly python: string;
  readonly http: string;
}

const ACTS: readonly Act[] = [...SANDBOX_ACTS, ...VOLUME_ACTS, ...PROJECT_ACTS, ...PLATFORM_ACTS];

/** Undefined: a step of something larger, such as a build, which has code of its own. */
export function codeOf({ method, path, body }: ActRequest): ActCode | undefined {
  const shown = body === undefined ? undefined : withoutSecrets(body, path);
  const request = { method, path, body: shown };
  for (const act of ACTS) {
    const ids = act.method === method ? idsOf(act.path, path) : undefined;
    const told = ids === undefined ? undefined : act.tell(ids, new Body(shown));
    if (told === undefined) continue;
    return {
      title: told.title,
      svc: told.svc,
      typescript: told.typescript ?? fetchOf(request),
      python: told.python ?? httpxOf(request),
      http: told.http ?? curlOf(request),
    };
  }
  return undefined;
}

/** The ids in a path; undefined: it is another path. */
function idsOf(pattern: string, path: string): string[] | undefined {
  const [expected, actual] = [pattern.split("/"), path.split("/")];
  if (expected.length !== actual.length) return undefined;
  const ids: string[] = [];
  for (const [index, part] of expected.entries()) {
    const found = actual[index] ?? "";
    if (part.startsWith(":")) ids.push(decodeURIComponent(found));
    else if (part !== found) return undefined;
  }
  return ids;
}
