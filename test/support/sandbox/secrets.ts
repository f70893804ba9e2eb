/** Secrets of a test, and requests that rules put their values into. */

import { randomBytes } from "node:crypto";
import { type SandboxNetworkOpts, Secret } from "e2b";
import { onTestFinished } from "vitest";

/** A value that appears nowhere else. */
export const freshValue = () => `v-${randomBytes(18).toString("hex")}`;

/** Makes a secret for one test. */
export async function ownSecret(value = freshValue()): Promise<{ readonly name: string; readonly value: string }> {
  const name = `test-${randomBytes(6).toString("hex")}`;
  await Secret.create(name, value);
  onTestFinished(async () => {
    await Secret.destroy(name).catch(() => undefined);
  });
  return { name, value };
}

/** A rule that sets headers on requests to a host. @param more fields that the SDK does not know, and passes on */
export function headerRule(host: string, headers: Record<string, string>, more: object = {}): SandboxNetworkOpts {
  return { rules: { [host]: [{ transform: { headers, ...more } }] } };
}
