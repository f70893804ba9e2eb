/** Reads the query and the body of a request as a route's contract describes them: every route does it here. */

import type { TSchema } from "typebox";
import type { Route } from "./contract.ts";
import { bodySchema } from "./fields/closed.ts";
import { knownFields } from "./fields/known.ts";
import { understood } from "./fields/understood.ts";
import { checkFields } from "./fields/unknown.ts";
import { fromUrl } from "./fields/url-values.ts";
import { type Check, check } from "./validate.ts";

/** @throws {AppError} bad_request */
export type Read = (given: unknown) => unknown;

/** Unknown parameters are ignored, unless one is a known parameter in another spelling. */
export function queryReader({ query, access }: Route): Read | undefined {
  if (query === undefined) return undefined;
  const exact = check(query, "query");
  if (access === "node") return (given) => exact.parse(fromUrl(query, given));
  const open = { ...query, additionalProperties: true };
  return (given) => {
    checkFields(open, given, { noun: "query parameter" });
    return exact.parse(fromUrl(query, given));
  };
}

/**
 * Clients may send null for an optional field, which means absent, and newer ones may send fields where the contract lets
 * them (docs/protocol.md, Requests). The platform's own programs do neither, so their bodies are taken as they are; of reports of a
 * later version what this one knows is taken.
 */
export function bodyReader(route: Route): Read | undefined {
  const schema = bodySchema(route);
  if (schema === undefined) return undefined;
  const absent = route.body === undefined || route.optionalBody === true ? {} : undefined;
  const exact = check(schema, "body");
  if (route.ignoresLater === true)
    return (given) => (exact.passes(given) ? given : exact.parse(knownFields(schema, given)));
  if (route.access === "node") return (given) => exact.parse(given ?? absent);
  return (given) => readBody(exact, schema, given ?? absent);
}

function readBody(exact: Check<TSchema>, schema: TSchema, given: unknown): unknown {
  const passes = exact.passes(given);
  const ignoresSome = checkFields(schema, given, { passes });
  return passes && !ignoresSome ? given : exact.parse(understood(schema, given));
}
