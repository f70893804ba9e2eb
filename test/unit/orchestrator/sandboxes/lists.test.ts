/** Lists of sandboxes: cursors of pages, and the metadata in a query. */

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { fromToken, parseMetadata, toToken } from "../../../../orchestrator/sandboxes/lists.ts";

test("a cursor is read back unchanged, and only in its own order", () => {
  const position = fc.record({
    startedAt: fc.integer({ min: 0, max: 4_102_444_800_000 }),
    id: fc.stringMatching(/^i[a-z0-9]{1,19}$/),
  });
  fc.assert(
    fc.property(position, fc.constantFrom("asc" as const, "desc" as const), (given, order) => {
      const token = toToken(given, order);
      expect(fromToken(token, order)).toEqual(given);
      expect(() => fromToken(token, order === "asc" ? "desc" : "asc")).toThrow("Invalid next token");
    }),
  );
});

test("metadata survives the encoding of the SDK", () => {
  const text = fc.string({
    unit: fc.constantFrom("a", "Z", " ", "&", "=", "%", "+", "ü", "日", "🦊", "/"),
    minLength: 1,
    maxLength: 12,
  });
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(text, text), { selector: ([k]) => k, maxLength: 5 }), (pairs) => {
      const encoded = new URLSearchParams(
        pairs.map(([k, v]): [string, string] => [encodeURIComponent(k), encodeURIComponent(v)]),
      );
      expect([...parseMetadata(encoded.toString())]).toEqual(pairs);
    }),
  );
});
