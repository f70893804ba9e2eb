/** Converts Docker's status codes to errors of the platform. */

import { AppError } from "../../shared/http/errors.ts";

export async function orUndefined<T>(answer: Promise<T>, ...expected: readonly number[]): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (expected.includes(statusOf(error) ?? 0)) return undefined;
    throw new AppError("internal", `Docker refused the request (status ${statusOf(error) ?? "unknown"})`, {
      cause: error,
    });
  }
}

export function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("statusCode" in error)) return undefined;
  return typeof error.statusCode === "number" ? error.statusCode : undefined;
}
