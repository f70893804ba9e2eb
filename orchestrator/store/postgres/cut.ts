/** Ends connections at once: the library closes them in order, after the statement under way, which a dead server never ends. */

import type { ClientBase } from "pg";

interface WithStream {
  readonly connection: { readonly stream: { destroy(): void } };
}

/** Statements under way fail. */
export function cut(client: ClientBase): void {
  (client as unknown as WithStream).connection.stream.destroy();
}
