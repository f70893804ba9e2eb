/**
 * Schemas that several nouns of the public API share. An object of a request has the fields of its schema and no other
 * (`http/fields/closed.ts`); `open` makes an exception where SDKs may be newer than the platform.
 */

import { type Static, type TSchema, Type } from "typebox";
import { OTHER_NAMES } from "../http/fields/closed.ts";
import { MESSAGES } from "../http/validate.ts";

/** Largest value of the wire's int32. */
export const INT32 = 2_147_483_647;

export function int32(options: {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly description?: string;
}) {
  return Type.Integer({ maximum: INT32, minimum: -INT32, ...options });
}

/** The wire contract's words for a keyword that fails. */
export function messages(words: Readonly<Record<string, string>>) {
  return { [MESSAGES]: words };
}

/**
 * For the bodies that SDKs send: fields of newer SDKs are ignored. Not for what decides who may reach what: an ignored field
 * there is an open door.
 */
export const open = { additionalProperties: true } as const;

/** Names of SDK options and the like that callers send for a field, with what the refusal advises. */
export function otherNames(names: Readonly<Record<string, string>>) {
  return { [OTHER_NAMES]: names };
}

/** SDKs count in milliseconds, the API in seconds. */
export const inSeconds = { timeoutMs: "`timeout`, in seconds" } as const;

/** String → value. Replaces Type.Record, whose pattern over names would let a name with a line break pass. */
export function map<S extends TSchema>(
  value: S,
  options: { readonly names: TSchema; readonly maxProperties: number; readonly description?: string },
) {
  const { names, ...rest } = options;
  return Type.Unsafe<Record<string, Static<S>>>({
    type: "object",
    additionalProperties: value,
    propertyNames: names,
    ...rest,
  });
}

export function nullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}

export const Timestamp = Type.String({ format: "date-time", description: "RFC 3339, UTC" });

/** Unix seconds in a query. */
export const UnixSeconds = Type.Integer({
  minimum: 0,
  maximum: 99_999_999_999,
  description: "Unix time, seconds",
  ...messages({
    maximum: "{field} must be Unix time in seconds, and this value is so large that it seems to be milliseconds",
  }),
});

export const SandboxId = Type.String({ minLength: 1, maxLength: 128, description: "Sandbox id, or id-clientID" });
/** Opens the history: without it a sandbox that has ended is not found. */
export const ended = Type.Optional(
  Type.Boolean({ description: "true: also a sandbox that has ended, for as long as the platform keeps its record" }),
);

export const bySandbox = Type.Object({ sandboxID: SandboxId });

/** UUID or `prj_…`; the look-up decides which. */
export const TeamId = Type.String({ minLength: 1, maxLength: 64, description: "Project: UUID or prj_ id" });

export const TemplateReference = Type.String({
  minLength: 1,
  maxLength: 256,
  description: "Template id or [namespace/]alias, with an optional :tag",
  examples: ["base"],
});
export const byTemplate = Type.Object({ templateID: TemplateReference });

export const page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 100 })),
  nextToken: Type.Optional(Type.String({ maxLength: 512, description: "From X-Next-Token of the page before" })),
};

export const Metadata = map(Type.String({ maxLength: 16_384 }), {
  names: Type.String({ minLength: 1, maxLength: 256 }),
  maxProperties: 256,
  description: "Free key–value pairs, returned as given; lists can be filtered by them",
});

export const cpuCount = Type.Integer({ minimum: 1, maximum: INT32, description: "CPU cores" });
export const memoryMB = Type.Integer({ minimum: 128, maximum: INT32, description: "Memory in MiB" });

export const LogLevel = Type.Enum(["debug", "info", "warn", "error"]);

export const logQuery = {
  cursor: Type.Optional(Type.Integer({ minimum: 0, maximum: 99_999_999_999_999, description: "Unix time, ms" })),
  direction: Type.Optional(Type.Enum(["forward", "backward"])),
  level: Type.Optional(LogLevel),
};
