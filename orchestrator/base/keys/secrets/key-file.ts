/**
 * Key-encryption keys in a file: a line `NAME BASE64` for each, the first of which wraps. The file is read at each use, so
 * that a new key needs no restart and no key stays in memory.
 */

import { open } from "node:fs/promises";
import { decrypt, encrypt, KEY_BYTES } from "./key-encryption.ts";
import type { KeySource } from "./secret-keys.ts";

interface Key {
  readonly name: string;
  readonly bytes: Buffer;
}

const MOST_BYTES = 64 * 1024;
const ANYONE = 0o007;

export interface KeyFile extends KeySource {
  /** Throws when the file cannot be used. */
  check(): Promise<void>;
}

export function keyFile(path: string): KeyFile {
  async function using<T>(work: (keys: readonly Key[]) => T): Promise<T> {
    const keys = await readKeys(path);
    try {
      return work(keys);
    } finally {
      for (const { bytes } of keys) bytes.fill(0);
    }
  }

  const first = ([key]: readonly Key[]): Key => {
    if (key === undefined) throw new Error(`${path} has no key`);
    return key;
  };

  return {
    check: async () => {
      await using(first);
    },
    current: () => using((keys) => first(keys).name),
    wrap: (dataKey) =>
      using((keys) => {
        const { name, bytes } = first(keys);
        return { name, bytes: encrypt(bytes, dataKey, context(name)) };
      }),
    unwrap: (name, wrapped) =>
      using((keys) => {
        const key = keys.find((each) => each.name === name);
        if (key === undefined) throw new Error(`${path} has no key '${name}', which a secret needs`);
        try {
          return decrypt(key.bytes, wrapped, context(name));
        } catch (cause) {
          throw new Error(`the key '${name}' in ${path} is another one than the key of that name before`, { cause });
        }
      }),
  };
}

async function readKeys(path: string): Promise<Key[]> {
  const file = await open(path, "r").catch((cause: unknown) => {
    throw new Error(`cannot read the key file ${path}`, { cause });
  });
  try {
    const { mode, size } = await file.stat();
    if ((mode & ANYONE) !== 0) throw new Error(`every user of the machine can use ${path}: chmod it to 600`);
    if (size > MOST_BYTES) throw new Error(`${path} is longer than ${MOST_BYTES} bytes`);
    const content = await file.readFile();
    const keys = parseKeys(content.toString("latin1"), path);
    content.fill(0);
    return keys;
  } finally {
    await file.close();
  }
}

/** Names lines in messages, never their text. */
function parseKeys(text: string, path: string): Key[] {
  const keys: Key[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const [, name, encoded = ""] = /^([A-Za-z0-9._-]{1,64}) +([A-Za-z0-9+/_-]+={0,2})\s*$/.exec(line) ?? [];
    const bytes = Buffer.from(encoded, "base64");
    if (name === undefined || bytes.length !== KEY_BYTES) {
      throw new Error(`line ${index + 1} of ${path} is not a key: write NAME and ${KEY_BYTES} bytes in base64`);
    }
    if (keys.some((key) => key.name === name)) throw new Error(`${path} has two keys '${name}'`);
    keys.push({ name, bytes });
  }
  return keys;
}

function context(name: string): string {
  return `data key under ${name}`;
}
