/** What makes this machine an edge, on its disk: its private key, and the certificate that the platform gave for it. */

import { join } from "node:path";
import { type Static, Type } from "typebox";
import { Value } from "typebox/value";
import { ConfigError } from "../../../shared/program/config.ts";
import { contentOf, replaceFile } from "../../../shared/program/private-files.ts";
import type { Credentials } from "../../../shared/tls/credentials.ts";
import { newPrivateKey } from "../../../shared/tls/request.ts";

/** PEM. */
const Kept = Type.Object({ authority: Type.String(), certificate: Type.String() });

export interface EdgeFiles {
  readonly directory: string;
  /** Undefined: this machine has not joined. @throws {ConfigError} for files that cannot be read */
  read(): Credentials | undefined;
  /** The key of this machine, PEM, made when there is none. A repeated join must have the key of the first one. */
  key(): Promise<string>;
  write(credentials: Credentials): void;
}

export function edgeFiles(stateDir: string): EdgeFiles {
  const directory = join(stateDir, "membership");
  const keyPath = join(directory, "key.pem");
  const keptPath = join(directory, "membership.json");
  return {
    directory,
    read() {
      const text = contentOf(keptPath);
      if (text === undefined) return undefined;
      const key = contentOf(keyPath);
      const kept = parse(text);
      if (key === undefined || kept === undefined) {
        const path = key === undefined ? keyPath : keptPath;
        throw new ConfigError([`${path} is missing or cannot be read: join the platform again with a new token`]);
      }
      return { ...kept, key };
    },
    async key() {
      const known = contentOf(keyPath);
      if (known !== undefined) return known;
      const key = await newPrivateKey();
      replaceFile(keyPath, key);
      return key;
    },
    write({ authority, certificate }) {
      const kept: Static<typeof Kept> = { authority, certificate };
      replaceFile(keptPath, `${JSON.stringify(kept, null, 2)}\n`);
    },
  };
}

function parse(text: string): Static<typeof Kept> | undefined {
  try {
    const kept: unknown = JSON.parse(text);
    return Value.Check(Kept, kept) ? kept : undefined;
  } catch {
    return undefined;
  }
}
