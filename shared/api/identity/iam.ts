/** The create option `iam`: which workload identity tokens a sandbox has, by name. */

import { type Static, Type } from "typebox";
import { map } from "../common.ts";

export const Iam = Type.Object({
  tokens: Type.Optional(
    map(
      Type.Object({
        audience: Type.String({
          minLength: 1,
          maxLength: 2048,
          description: "The claim `aud`, exactly as given",
          examples: ["sts.amazonaws.com"],
        }),
        tokenType: Type.Enum(["JWT-SVID"]),
      }),
      {
        // Characters that a placeholder could not name are refused.
        names: Type.String({ minLength: 1, maxLength: 128, pattern: "^[^{}\\u0000-\\u001f\\u007f-\\u009f]+$" }),
        maxProperties: 5,
        description:
          "Workload identity tokens by name. Header values of network rules name them: `${e2b.identity.tokens.NAME}`",
      },
    ),
  ),
});

/** The option as it is stored and read back: never without a token. */
export interface IdentityTokens {
  readonly tokens: Readonly<Record<string, NonNullable<Static<typeof Iam>["tokens"]>[string]>>;
}
