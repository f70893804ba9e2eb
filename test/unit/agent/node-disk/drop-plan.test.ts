/** What a node drops while its disk is short: only what it can make again, in a fixed order, and nothing durable ever. */

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type Drop, planDrop, type Remakable } from "../../../../agent/node-disk/drop-plan.ts";
import type { DiskLevel } from "../../../../agent/node-disk/space.ts";

const ORDER = ["held", "pool", "frozen", "layers"] as const;
const short: DiskLevel = { is: "short", of: "bytes", urgent: false };
const none: ReadonlySet<string> = new Set();

const ids = (prefix: string) =>
  fc.uniqueArray(
    fc.nat(20).map((number) => `${prefix}${number}`),
    { maxLength: 6 },
  );
const marked = <Mark extends string>(prefix: string, mark: Mark) =>
  ids(prefix).chain((all) =>
    fc.tuple(
      ...all.map((id) => fc.boolean().map((is) => ({ id, [mark]: is }) as { id: string } & Record<Mark, boolean>)),
    ),
  );
const node: fc.Arbitrary<Remakable> = fc.record({
  held: ids("held").map((all) => all.map((id) => ({ id }))),
  pool: ids("pool").map((all) => all.map((id) => ({ id }))),
  frozen: marked("frozen", "ran"),
  layers: marked("layer", "inUse"),
});
const level: fc.Arbitrary<DiskLevel> = fc.oneof(
  fc.record({
    is: fc.constant("short" as const),
    of: fc.constantFrom("bytes" as const, "inodes" as const),
    urgent: fc.boolean(),
  }),
  fc.record({ is: fc.constantFrom("near" as const, "enough" as const) }),
);

/** What can be made again: all but the state of a sandbox that is stored nowhere else, and layers that a build may need. */
const remakable = ({ held, pool, frozen, layers }: Remakable) => ({
  held: held.map(({ id }) => id),
  pool: pool.map(({ id }) => id),
  frozen: frozen.filter(({ ran }) => !ran).map(({ id }) => id),
  layers: layers.filter(({ inUse }) => !inUse).map(({ id }) => id),
});
const without = (there: Remakable, { of, ids: gone }: Drop): Remakable => ({
  ...there,
  [of]: there[of].filter(({ id }) => !gone.includes(id)),
});

test("only what can be made again is dropped, only while the disk is short, and a kind only when none of an earlier one is left", () => {
  fc.assert(
    fc.property(level, node, fc.array(fc.nat(20)), (now, there, numbers) => {
      const tried = new Set(
        numbers.flatMap((number) => [`held${number}`, `pool${number}`, `frozen${number}`, `layer${number}`]),
      );
      const drop = planDrop(now, there, tried);
      const left = ORDER.map((of) => ({ of, ids: remakable(there)[of].filter((id) => !tried.has(id)) }));
      expect(drop).toEqual(now.is === "short" ? left.find((one) => one.ids.length > 0) : undefined);
    }),
  );
});

test("a disk that stays short ends with everything durable in place, after each kind was dropped once", () => {
  fc.assert(
    fc.property(node, (before) => {
      const kinds: string[] = [];
      let there = before;
      for (let drop = planDrop(short, there, none); drop !== undefined; drop = planDrop(short, there, none)) {
        kinds.push(drop.of);
        there = without(there, drop);
      }
      expect(kinds).toEqual(ORDER.filter((of) => remakable(before)[of].length > 0));
      expect(there).toEqual({
        held: [],
        pool: [],
        frozen: before.frozen.filter(({ ran }) => ran),
        layers: before.layers.filter(({ inUse }) => inUse),
      });
    }),
  );
});
