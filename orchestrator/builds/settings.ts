/** What sandboxes of a build start with. Kept sealed: a variable of a template may well be a secret. */

import type { BuildSettings } from "../../shared/agent-api/build-shapes.ts";
import type { Seal } from "../../shared/program/seal.ts";
import type { Build } from "../store/templates.ts";

/** One for all builds, because the builds of snapshots take over those of their sandbox's build as they are. */
const CONTEXT = "build settings";

/** Of an image nobody has said anything about. */
const FRESH: BuildSettings = { envs: {}, user: "user", workdir: "/home/user" };

export function sealSettings(sealing: Seal, settings: BuildSettings): string {
  return sealing.close(JSON.stringify(settings), CONTEXT);
}

export function settingsOf(
  sealing: Seal,
  build: Pick<Build, "sealedSettings" | "defaultUser" | "defaultWorkdir">,
): BuildSettings {
  if (build.sealedSettings !== undefined) {
    return JSON.parse(sealing.open(build.sealedSettings, CONTEXT)) as BuildSettings;
  }
  return { ...FRESH, user: build.defaultUser ?? FRESH.user, workdir: build.defaultWorkdir ?? FRESH.workdir };
}
