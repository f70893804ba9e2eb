/** Certificates that the platform's programs show: of the node, and those that the operator gave. */

import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine } from "../base/this-machine.ts";
import type { Certificate } from "./evidence.ts";

export async function readCertificates({ instance }: Machine): Promise<readonly Certificate[]> {
  const membership = join(instance.places.state, "agent/membership/membership.json");
  const named = instance.programs.flatMap((program) =>
    Object.entries(instance.environment(program))
      .filter(([name]) => /^SVC_[A-Z_]*CERT(IFICATE)?_FILE$/.test(name))
      .map(([, path]) => path),
  );
  const edge = join(instance.places.state, "edge/membership/membership.json");
  return [
    ...[membership, edge].filter((path) => existsSync(path)).map((path) => read(path, fromMembership)),
    ...[...new Set(named)].map((path) => read(path, (text) => text)),
  ];
}

function fromMembership(text: string): string {
  const { certificate } = JSON.parse(text) as { readonly certificate?: unknown };
  if (typeof certificate !== "string") throw new Error("it has no certificate");
  return certificate;
}

function read(path: string, certificateIn: (text: string) => string): Certificate {
  try {
    const { validFrom, validTo } = new X509Certificate(certificateIn(readFileSync(path, "utf8")));
    return { path, from: Date.parse(validFrom), until: Date.parse(validTo), problem: undefined };
  } catch (error) {
    return { path, from: 0, until: 0, problem: error instanceof Error ? error.message : String(error) };
  }
}
