/**
 * Finds sandboxes by their envd token, with one look-up. The keys are hashes: how long a look-up takes says nothing about
 * the tokens that are in the index.
 */

import { createHash } from "node:crypto";
import { sameSecret } from "../../shared/ids.ts";

interface WithToken {
  readonly envdAccessToken: string;
}

export class TokenIndex<Item extends WithToken> {
  readonly #items = new Map<string, Item>();

  static of<Item extends WithToken>(items: Iterable<Item>): TokenIndex<Item> {
    const index = new TokenIndex<Item>();
    for (const item of items) index.set(item);
    return index;
  }

  /** Replaces the item with the same token. */
  set(item: Item): void {
    this.#items.set(keyOf(item.envdAccessToken), item);
  }

  delete(item: Item): void {
    this.#items.delete(keyOf(item.envdAccessToken));
  }

  find(token: string): Item | undefined {
    const item = token === "" ? undefined : this.#items.get(keyOf(token));
    return item !== undefined && sameSecret(token, item.envdAccessToken) ? item : undefined;
  }
}

function keyOf(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}
