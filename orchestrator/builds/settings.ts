/** The settings that a build's sandboxes start with. Sealed in the database: variables of a template may be secrets. */

import type { BuildSettings } from "../../shared/agent-api/build-shapes.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import type { Build } from "../store/builds/record.ts";
import { BUILD_SETTINGS_CONTEXT as CONTEXT } from "../store/sealed/contexts.ts";

/** Settings of an image that declares none. */
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
