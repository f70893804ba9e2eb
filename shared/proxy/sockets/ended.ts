/** Waits for the end of a response: resolves when it has left, or its socket is gone; destroys it after `limitMs`. */

import type { ServerResponse } from "node:http";

export function ended(response: ServerResponse, limitMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (response.writableFinished || response.closed) {
      resolve();
      return;
    }
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      response.destroy();
      resolve();
    }, limitMs);
    response.once("finish", done);
    response.once("close", done);
  });
}
