/** Schemas that several settings share. */

import { Type } from "typebox";

/** Undefined: no limit. */
export const limit = (minimum: number, description: string) =>
  Type.Optional(
    Type.Integer({
      minimum,
      maximum: 2_147_483_647,
      description: `${description}, unless the project has a limit of its own`,
    }),
  );

export const ms = (fallback: number, description: string) =>
  Type.Integer({ default: fallback, minimum: 10, maximum: 86_400_000, description: `${description}, ms` });

export const port = (fallback: number, description: string) =>
  Type.Integer({ default: fallback, minimum: 0, maximum: 65_535, description });

export const secret = (description: string) => Type.String({ minLength: 16, maxLength: 1024, description });

export const connections = (description: string) =>
  Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 1_000_000,
    description: `${description}; 0 derives it from the limit of open files`,
  });

/** By its own name, which every program that sends spans reads. */
export const otlpEndpoint = Type.Optional(
  Type.String({
    variable: "OTEL_EXPORTER_OTLP_ENDPOINT",
    pattern: "^(https?://\\S+)?$",
    maxLength: 4096,
    description:
      "Where a collector takes spans by OTLP over HTTP, for example http://127.0.0.1:4318; empty: nothing is sent",
  }),
);
