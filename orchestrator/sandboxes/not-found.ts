/** The refusal for a sandbox that does not exist or is another project's: equal words, so that ids cannot be probed. */

import { AppError } from "../../shared/http/errors.ts";
import { parseSandboxId } from "../../shared/ids.ts";

export function notFound(id: string): AppError {
  return new AppError("sandbox_not_found", `Sandbox "${id}" doesn't exist or you don't have access to it`);
}

/** The id of `id` or `id-clientID`; AppError `bad_request` for any other form. */
export function checkedId(reference: string): string {
  const id = parseSandboxId(reference);
  if (id === undefined) throw new AppError("bad_request", "Invalid sandbox ID");
  return id;
}
