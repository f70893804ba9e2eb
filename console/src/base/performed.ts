/** What was done on this page since it was loaded, for people who want to do it again by a program. No secret is kept. */

import { signal } from "@preact/signals";
import { withoutSecrets } from "./without-secrets.ts";

/** A request that changes something. */
export interface ActRequest {
  readonly method: string;
  /** Of the API, with its ids. */
  readonly path: string;
  readonly body?: unknown;
}

export interface Performed {
  readonly request: ActRequest;
  readonly at: number;
}

const MOST = 30;

/** The newest first. */
export const performed = signal<readonly Performed[]>([]);

export function notePerformed({ method, path, body }: ActRequest): void {
  const request = { method, path, ...(body === undefined ? {} : { body: withoutSecrets(body, path) }) };
  performed.value = [{ request, at: Date.now() }, ...performed.value].slice(0, MOST);
}

/** Hides it from the person who logs in next. */
export function forgetPerformed(): void {
  performed.value = [];
}
