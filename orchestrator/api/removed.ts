/** Routes that were removed: they authenticate, validate and then refuse. */

import type { removedApi } from "../../shared/api/builds.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";

/** Answers 410 on each removed route and names its replacement. */
export function removed(): Handlers<typeof removedApi> {
  const refuse = (message: string) => (): never => {
    throw new AppError("gone", message);
  };
  const build = refuse("First-generation template builds were removed; use POST /v3/templates");
  const token = refuse("Access tokens are discontinued since 1 August 2026; use an API key");
  return {
    createTemplateV1: build,
    rebuildTemplateV1: build,
    startBuildV1: build,
    createAccessToken: token,
    deleteAccessToken: token,
  };
}
