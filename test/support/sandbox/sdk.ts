/** Sandboxes for tests, made with the published SDK and killed when their block or test is over. */

import { Sandbox, type SandboxOpts } from "e2b";
import { afterAll, beforeAll, onTestFinished } from "vitest";

/** Makes one sandbox for all tests of a `describe` block, which it outlives; those tests must not depend on each other. */
export function sharedSandbox(options: SandboxOpts = {}): () => Sandbox {
  return shared(() => Sandbox.create({ timeoutMs: 1_800_000, ...options }));
}

/** The same, for a sandbox of any class of the SDK. */
export function shared<One extends Sandbox>(create: () => Promise<One>): () => One {
  let sandbox: One | undefined;
  beforeAll(async () => {
    sandbox = await create();
  });
  afterAll(async () => {
    await sandbox?.kill();
  });
  return () => {
    if (sandbox === undefined) throw new Error("the sandbox of this block was not created");
    return sandbox;
  };
}

/** Makes a sandbox for one test; it lives longer than a test may take. */
export async function ownSandbox(options: SandboxOpts = {}): Promise<Sandbox> {
  return killedAfterwards(await Sandbox.create({ timeoutMs: 300_000, ...options }));
}

/**
 * Makes a sandbox for one test whose time was extended before its first end. Where the machine stands still for longer than that,
 * the next sandbox has more time.
 */
export async function extendedInTime(): Promise<{ sandbox: Sandbox; firstEnd: Date }> {
  for (const timeoutMs of [3_000, 20_000, 60_000]) {
    const asked = Date.now();
    const sandbox = await ownSandbox({ timeoutMs });
    try {
      const { endAt } = await sandbox.getInfo();
      await sandbox.setTimeout(300_000);
      return { sandbox, firstEnd: endAt };
    } catch (error) {
      if (Date.now() - asked < timeoutMs / 2) throw error;
    }
  }
  throw new Error("the machine stands still too long for a time-out of a minute");
}

/** Kills the sandbox when the test is over. */
export function killedAfterwards<One extends Sandbox>(sandbox: One): One {
  onTestFinished(async () => {
    await sandbox.kill();
  });
  return sandbox;
}

/** Resolves to the error with which a promise rejects; throws when the promise does not reject. */
export async function refusal(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error) return error;
    throw new Error(`refused with ${String(error)}`, { cause: error });
  }
  throw new Error("was not refused");
}

export function text(value: Uint8Array): string {
  return Buffer.from(value).toString("utf8");
}

/** Resolves to "there", or to the name of the error that reading the sandbox gives. */
export function whereabouts({ sandboxId }: Sandbox): Promise<string> {
  return Sandbox.getInfo(sandboxId).then(
    () => "there",
    (error: Error) => error.name,
  );
}
