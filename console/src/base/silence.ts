/**
 * Ends a connection that is gone without a sign: a laptop slept, or a network between has forgotten it. The platform sends
 * something at least every 20 seconds on a stream on which nothing happens, so a longer silence means that it is gone.
 */

import { Failed } from "./failed.ts";

const SILENCE_MS = 60_000;

/** @param reading of a stream that goes on. @throws {Failed} nothing has come for a minute */
export function beforeSilence<T>(reading: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const silent = () => reject(new Failed("The connection is gone: nothing has come for a minute.", { status: 0 }));
    const timer = setTimeout(silent, SILENCE_MS);
    reading.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}
