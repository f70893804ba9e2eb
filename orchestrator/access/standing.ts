/** A banned project refuses every call; a disabled project accepts reads and deletions only. Pure. */

import type { Route } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Project } from "../store/projects/record.ts";

type Standing = Pick<Project, "status" | "statusReason">;

/**
 * Refuses a call before its object is looked up, so that the answer does not depend on it. A disabled project can read and
 * clean up.
 * @throws {AppError} forbidden, in the words of the hosted service
 */
export function checkStanding(project: Standing, { method }: Pick<Route, "method">): void {
  if (project.status === "disabled" && (method === "GET" || method === "DELETE")) return;
  const refusal = refusalOf(project);
  if (refusal !== undefined) throw refusal;
}

/** Why the project may start nothing; undefined: it may. */
export function refusalOf({ status, statusReason }: Standing): AppError | undefined {
  switch (status) {
    case "active":
      return undefined;
    case "disabled":
      return new AppError("forbidden", `team is blocked: ${statusReason ?? "no reason was given"}`);
    case "banned":
      return new AppError("forbidden", "team is banned");
    case "deleting":
      return new AppError("forbidden", "the project is being deleted");
  }
}
