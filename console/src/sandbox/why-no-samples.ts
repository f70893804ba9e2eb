/** Why the page has no sample of a sandbox. Pure. */

import type { SandboxDetail } from "../../../shared/api/sandboxes/sandbox-shapes.ts";

/** Of the hour that the page asks for: the last one, or the one before the end. */
const WORDS: Readonly<Record<SandboxDetail["state"], string>> = {
  running: "The first sample comes a few seconds after a start or a resume.",
  paused: "There is no sample of the last hour: the sandbox is paused, and samples are taken while it runs.",
  ended:
    "There is no sample of its last hour: it ended before the first one, was paused, or its node no longer keeps them.",
};

export function whyNoSamples(state: SandboxDetail["state"]): string {
  return WORDS[state];
}
