/**
 * What makes this machine a node, on its disk: its private key, and the certificate and tokens that the platform gave for it.
 * Only root reads the directory. Each file is replaced in one step that survives a power cut.
 */

import { join } from "node:path";
import { type Static, Type } from "typebox";
import { Value } from "typebox/value";
import { ConfigError } from "../../shared/program/config.ts";
import { contentOf, replaceFile } from "../../shared/program/private-files.ts";
import type { Credentials } from "../../shared/tls/credentials.ts";
import { newPrivateKey } from "../../shared/tls/request.ts";

/** What the platform gave. */
const Kept = Type.Object({
  /** PEM. */
  authority: Type.String(),
  certificate: Type.String(),
  /** Sent to the orchestrator, and sent by it. */
  nodeToken: Type.String({ minLength: 16 }),
  orchestratorToken: Type.String({ minLength: 16 }),
});

export interface Membership {
  readonly credentials: Credentials;
  readonly nodeToken: string;
  readonly orchestratorToken: string;
}

export interface MembershipFiles {
  readonly directory: string;
  /** Undefined: this machine has not joined. @throws {ConfigError} for files that cannot be read */
  read(): Membership | undefined;
  /** The key of this machine, PEM, made when there is none. A repeated join must have the key of the first one. */
  key(): Promise<string>;
  write(membership: Membership): void;
}

export function membershipFiles(directory: string): MembershipFiles {
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
      const { authority, certificate, ...tokens } = kept;
      return { credentials: { authority, certificate, key }, ...tokens };
    },
    async key() {
      const known = contentOf(keyPath);
      if (known !== undefined) return known;
      const key = await newPrivateKey();
      replaceFile(keyPath, key);
      return key;
    },
    write({ credentials: { authority, certificate, key }, nodeToken, orchestratorToken }) {
      // Lost while the agent runs, which has it still.
      if (contentOf(keyPath) !== key) replaceFile(keyPath, key);
      const kept: Static<typeof Kept> = { authority, certificate, nodeToken, orchestratorToken };
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
