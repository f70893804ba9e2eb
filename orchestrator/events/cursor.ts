/** Page tokens of events and deliveries: a place in the order of events, which stays when the item at it is deleted. Pure. */

import { AppError } from "../../shared/http/errors.ts";

export function toToken(sequence: number): string {
  return Buffer.from(String(sequence)).toString("base64url");
}

/** @throws {AppError} bad_request for a damaged token */
export function fromToken(token: string): number {
  const sequence = readSequence(Buffer.from(token, "base64url").toString("utf8"));
  if (sequence === undefined) throw new AppError("bad_request", "Invalid next token");
  return sequence;
}

/** Undefined for anything but a place in the order. */
export function readSequence(text: string): number | undefined {
  return /^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}
