/** Starts the test internet for a whole run of a vitest project; two projects in one run share it. */

import { startInternet } from "./start.ts";

const shared = globalThis as { testInternet?: Promise<{ stop(): Promise<void> }>; testInternetUsers?: number };

export async function setup(): Promise<void> {
  shared.testInternetUsers = (shared.testInternetUsers ?? 0) + 1;
  shared.testInternet ??= startInternet(process.env.SVC_INSTANCE ?? "test");
  await shared.testInternet;
}

export async function teardown(): Promise<void> {
  shared.testInternetUsers = (shared.testInternetUsers ?? 1) - 1;
  if (shared.testInternetUsers > 0) return;
  const running = shared.testInternet;
  delete shared.testInternet;
  await (await running)?.stop();
}
