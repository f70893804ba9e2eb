/** What an image has for builds on top of it that a template's build does not do, for the build's log. Pure. */

import type { FoundImage } from "../../containers/containers.ts";

const MOST_SHOWN = 1_000;

/** A sentence for each part. */
export function leftOut({ triggers, shell }: Pick<FoundImage, "triggers" | "shell">): string[] {
  const lines: string[] = [];
  if (triggers.length > 0)
    lines.push(`The image's ONBUILD instructions are not run, make them steps of this build: ${shown(triggers, "; ")}`);
  if (shell.length > 0) lines.push(`The image's SHELL is not used, commands run in bash -l -c: ${shown(shell, " ")}`);
  return lines;
}

function shown(parts: readonly string[], between: string): string {
  return parts.join(between).slice(0, MOST_SHOWN);
}
