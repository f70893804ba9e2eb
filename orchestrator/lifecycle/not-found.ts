/** The error for an unknown sandbox and for another project's: the text is the same, so that ids cannot be probed. */

import { AppError } from "../../shared/http/errors.ts";
import { parseSandboxId } from "../../shared/ids.ts";

export function notFound(id: string): AppError {
  return new AppError("sandbox_not_found", `Sandbox "${id}" doesn't exist or you don't have access to it`);
}

/** The id of `id` or `id-clientID`. @throws {AppError} bad_request for any other form. */
export function checkedId(reference: string): string {
  const id = parseSandboxId(reference);
  if (id === undefined) throw new AppError("bad_request", "Invalid sandbox ID");
  return id;
}
