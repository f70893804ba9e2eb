/** The key-encryption keys: in a file, or behind a command. The current one wraps data keys; all of them unwrap. */

import { AppError } from "../../../../shared/http/errors.ts";
import type { Log } from "../../../../shared/program/log.ts";
import type { WrappedKey } from "../../../store/secrets/secrets.ts";
import { KEY_BYTES } from "./key-encryption.ts";

/** One place of key-encryption keys. Errors say what is wrong with the place; they never hold bytes of a key. */
export interface KeySource {
  /** Throws when the source cannot be used. */
  check?(): Promise<void>;
  /** Name of the key that wraps now. */
  current(): Promise<string>;
  wrap(dataKey: Buffer): Promise<{ readonly name: string; readonly bytes: Buffer }>;
  unwrap(name: string, bytes: Buffer): Promise<Buffer>;
}

export interface SecretKeys {
  /** Throws when the key file cannot be used. */
  check(): Promise<void>;
  /** Id of the key that wraps now. */
  current(): Promise<string>;
  wrap(dataKey: Buffer): Promise<WrappedKey>;
  /** The caller overwrites the bytes after use. */
  unwrap(key: WrappedKey): Promise<Buffer>;
}

type Place = "file" | "command";

interface SecretKeysDeps {
  readonly sources: Readonly<Partial<Record<Place, KeySource>>>;
  readonly log: Log;
}

/** Ids are `file:NAME` and `command:NAME`. A command, where there is one, wraps. Undefined: there is no key at all. */
export function createSecretKeys({ sources, log }: SecretKeysDeps): SecretKeys | undefined {
  const place: Place = sources.command === undefined ? "file" : "command";
  const source = sources[place];
  if (source === undefined) return undefined;

  async function unwrap({ keyId, wrapped }: WrappedKey): Promise<Buffer> {
    const at = keyId.indexOf(":");
    const named = sources[keyId.slice(0, at) as Place];
    if (named === undefined) throw new Error(`no setting says where the key '${keyId}' is`);
    const bytes = await named.unwrap(keyId.slice(at + 1), Buffer.from(wrapped, "base64"));
    if (bytes.length === KEY_BYTES) return bytes;
    throw new Error(`the key '${keyId}' gave ${bytes.length} bytes in place of a data key of ${KEY_BYTES}`);
  }

  /** A data key that cannot be unwrapped again would lose its secret, so it is tried before anything is stored. */
  async function wrap(dataKey: Buffer): Promise<WrappedKey> {
    const { name, bytes } = await (source as KeySource).wrap(dataKey);
    const key = { keyId: `${place}:${name}`, wrapped: bytes.toString("base64") };
    const again = await unwrap(key);
    const same = again.equals(dataKey);
    again.fill(0);
    if (!same) throw new Error(`the key '${key.keyId}' does not unwrap what it wrapped`);
    return key;
  }

  async function available<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      log.error({ err: cause }, "could not use a key-encryption key of secrets");
      throw new AppError("unavailable", "secrets cannot be used now: the operator finds the reason in the log", {
        cause,
      });
    }
  }

  return {
    async check() {
      await sources.file?.check?.();
    },
    current: () => available(async () => `${place}:${await source.current()}`),
    wrap: (dataKey) => available(() => wrap(dataKey)),
    unwrap: (key) => available(() => unwrap(key)),
  };
}
