/** Settings of projects' secrets. */

import { Type } from "typebox";
import { ms } from "./schemas.ts";

export const secretSettings = {
  secretsKeyFile: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        "File of the keys that encrypt secrets: a line NAME BASE64 for each, 32 bytes; the first encrypts, all decrypt; read at each use",
    }),
  ),
  secretsKeyCommand: Type.Optional(
    Type.String({
      pattern: "^/",
      maxLength: 1024,
      description:
        "Program that encrypts the keys of secrets instead, such as a client of a key service: PROGRAM wrap|unwrap NAME, bytes on stdin and stdout",
    }),
  ),
  secretsKeyName: Type.String({
    default: "main",
    pattern: "^[A-Za-z0-9._-]{1,64}$",
    description: "Name of the key that SVC_SECRETS_KEY_COMMAND encrypts with",
  }),
  secretsKeyCommandMs: ms(5_000, "Limit of one call of SVC_SECRETS_KEY_COMMAND"),
  maxProjectSecrets: Type.Integer({
    default: 1000,
    minimum: 1,
    maximum: 100_000,
    description: "Most secrets of a project",
  }),
};
