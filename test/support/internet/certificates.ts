/** The test internet's own authority, kept in a directory, and certificates for every name that a client requests. */

import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, rename } from "node:fs/promises";
import { run } from "../platform/programs.ts";

export function authorityFile(directory: string): string {
  return `${directory}/ca.pem`;
}

/** Makes the authority where there is none yet. All users may read its certificate, as programs must be able to trust it. */
export async function makeAuthority(directory: string): Promise<void> {
  if (existsSync(authorityFile(directory))) return;
  await mkdir(directory, { recursive: true, mode: 0o755 });
  await run("openssl", [
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365".split(" "),
    ..."-addext basicConstraints=critical,CA:TRUE".split(" "),
    ...pairs({
      "-subj": "/CN=Test internet authority",
      "-keyout": `${directory}/ca.key`,
      "-out": `${directory}/ca.new`,
    }),
  ]);
  await chmod(`${directory}/ca.key`, 0o600);
  await chmod(`${directory}/ca.new`, 0o644);
  await rename(`${directory}/ca.new`, authorityFile(directory));
}

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/**
 * Returns a function that makes and keeps a certificate for each SNI name. All names share one key, because making keys
 * takes time.
 */
export async function certificates(directory: string): Promise<(name: string) => Promise<Certificate>> {
  const keyFile = `${directory}/leaf.key`;
  await run("openssl", ["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", keyFile]);
  const key = await readFile(keyFile, "utf8");
  const signer = { "-CA": authorityFile(directory), "-CAkey": `${directory}/ca.key` };
  const made = new Map<string, Promise<Certificate>>();
  const make = async (name: string) => {
    if (!/^[a-z0-9._-]{1,253}$/i.test(name)) throw new Error(`no certificate for ${JSON.stringify(name)}`);
    const cert = await run("openssl", [
      ..."req -x509 -new -days 30 -addext basicConstraints=critical,CA:FALSE".split(" "),
      ...pairs({ "-key": keyFile, ...(name.startsWith("untrusted.") ? {} : signer) }),
      ...pairs({ "-subj": "/CN=test internet", "-addext": `subjectAltName=DNS:${name}` }),
    ]);
    return { key, cert };
  };
  return (name) => {
    const known = made.get(name) ?? make(name);
    made.set(name, known);
    return known;
  };
}

function pairs(options: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(options).flat();
}
