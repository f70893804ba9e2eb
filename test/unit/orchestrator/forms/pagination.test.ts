/** Pages of a list that changes between two pages. */

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { page } from "../../../../orchestrator/forms/pagination.ts";

interface Item {
  readonly at: number;
  readonly name: string;
}

const item = fc.record({ at: fc.integer({ min: 0, max: 5 }), name: fc.stringMatching(/^[a-z0-9:_]{1,3}$/) });
const items = fc.uniqueArray(item, { selector: ({ at, name }) => `${at} ${name}`, maxLength: 12 });

test("entries that stay are listed once and in order, while others are deleted and added between pages", () => {
  fc.assert(
    fc.property(
      items,
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.record({ remove: fc.nat(), add: fc.option(item) }), { maxLength: 13 }),
      (start, limit, changes) => {
        let list: Item[] = [...start];
        const stayed = new Set(start);
        const shown: Item[] = [];
        const known = (given: Item) =>
          [...list, ...shown].some(({ at, name }) => at === given.at && name === given.name);
        for (let round = 0, token: string | undefined = ""; token !== undefined; round++) {
          let next: string | undefined;
          const header = (_: string, value: string) => {
            next = value;
          };
          shown.push(...page(list, { limit, nextToken: token, placeOf: (each) => each }, header));
          token = next;
          const { remove, add = null } = changes[round] ?? {};
          if (remove === undefined) continue;
          // Half of the removals take the item from which the token was made.
          const gone = remove % 2 === 0 ? shown.at(-1) : list[remove % list.length];
          list = list.filter((each) => each !== gone);
          if (gone !== undefined && !shown.includes(gone)) stayed.delete(gone);
          if (add !== null && !known(add)) list.push(add);
        }
        expect(new Set(shown).size).toBe(shown.length);
        for (const each of stayed) expect(shown).toContain(each);
        const order = shown.map(({ at, name }) => [-at, name] as const);
        expect(order).toEqual([...order].sort(([a, x], [b, y]) => a - b || (x < y ? -1 : 1)));
      },
    ),
  );
});

test.each(["abc", "%%", Buffer.from("1__").toString("base64url"), Buffer.from("x__y").toString("base64url")])(
  "the token '%s' is refused",
  (nextToken) => {
    expect(() => page([], { nextToken, placeOf: (each) => each }, () => undefined)).toThrow("Invalid next token");
  },
);
