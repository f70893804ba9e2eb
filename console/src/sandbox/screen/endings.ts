/** How the screen of a sandbox ends, and what the page does then. Pure. */

import { afterFailure } from "../shell-failure.ts";

/** The sandbox lacks the programs: it is no desktop. */
export class NoScreen extends Error {}

/** What comes from the sandbox is nothing that the page shows. */
export class Refused extends Error {}

/** The screen's server in the sandbox has ended, or never answered. */
export class ServerEnded extends Error {}

const MOST_TRIES = 3;

/**
 * `again`: the live screen is opened once more. `instead`: the page shows pictures until somebody asks for it.
 * @param tries that have ended one after the other without having shown the screen for a while
 */
export function afterEnding(error: unknown, tries: number): "again" | "instead" {
  if (error instanceof NoScreen || error instanceof Refused) return "instead";
  if (error instanceof ServerEnded) return tries < MOST_TRIES ? "again" : "instead";
  // The sandbox stands still, or nothing has answered: both may last.
  return afterFailure(error, true) === "end" ? "instead" : "again";
}
