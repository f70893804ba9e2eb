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
