/** Routes that authenticate, validate and then refuse: those of later versions (501), and removed ones (410). */

import type { removedApi } from "../../shared/api/builds.ts";
import type { Handlers, Route } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";

/** Answers 501 on every route of a contract that is marked `notImplemented`; the API description shows the mark. */
export function notYet<C extends Readonly<Record<string, Route & { readonly notImplemented: true }>>>(
  contract: C,
): Handlers<C, unknown> {
  const refuse = (summary: string) => () => {
    throw new AppError("not_implemented", `not implemented by this version of the platform: ${summary}`);
  };
  const handlers = Object.entries(contract).map(([name, { summary }]) => [name, refuse(summary)] as const);
  return Object.fromEntries(handlers) as unknown as Handlers<C, unknown>;
}

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
