import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cellsOf, hostExtents, isZero, withoutZeros } from "../../../../agent/blobs/trees/extents.ts";

/** Extents in order, with holes between some of them, as a file system reports them. */
const files = fc
  .array(fc.record({ hole: fc.nat(40), data: fc.integer({ min: 1, max: 40 }) }), { maxLength: 12 })
  .chain((ranges) => {
    let end = 0;
    const extents = ranges.map(({ hole, data }) => {
      const at = end + hole;
      end = at + data;
      return { at, length: data };
    });
    return fc.record({ extents: fc.constant(extents), size: fc.integer({ min: end, max: end + 50 }) });
  });

describe("the cells of a file", () => {
  test("cover each byte of data once, lie on their grid, and have data in them", () => {
    fc.assert(
      fc.property(files, fc.integer({ min: 1, max: 30 }), ({ extents, size }, cellBytes) => {
        const cells = [...cellsOf(size, extents, cellBytes)];
        const covered = new Set<number>();
        for (const [index, cell] of cells.entries()) {
          expect(cell.at % cellBytes).toBe(0);
          expect(cell.length).toBe(Math.min(cellBytes, size - cell.at));
          expect(cell.at).toBeGreaterThan(cells[index - 1]?.at ?? -1);
          expect(cell.data.length).toBeGreaterThan(0);
          for (const { at, length } of cell.data)
            for (let byte = at; byte < at + length; byte++) {
              expect(byte >= cell.at && byte < cell.at + cell.length && !covered.has(byte)).toBe(true);
              covered.add(byte);
            }
        }
        expect(covered.size).toBe(extents.reduce((sum, { length }) => sum + length, 0));
      }),
    );
  });

  test("of a file that became shorter end with it", () => {
    expect([...cellsOf(10, [{ at: 4, length: 20 }], 8)]).toEqual([
      { at: 0, length: 8, data: [{ at: 4, length: 4 }] },
      { at: 8, length: 2, data: [{ at: 8, length: 2 }] },
    ]);
  });
});

test("what is written without blocks of zeros makes the same file", () => {
  const blocks = fc.array(fc.record({ zero: fc.boolean(), length: fc.integer({ min: 1, max: 9_000 }) }), {
    maxLength: 8,
  });
  fc.assert(
    fc.property(blocks, fc.nat(10_000), (parts, at) => {
      const bytes = Buffer.concat(parts.map(({ zero, length }) => Buffer.alloc(length, zero ? 0 : 1)));
      const made = Buffer.alloc(at + bytes.length);
      const written = [...withoutZeros(at, bytes)];
      for (const part of written) made.set(part.bytes, part.at);
      expect(made.subarray(at).equals(bytes)).toBe(true);
      // No block on the grid that is written is all zeros.
      for (const part of written)
        for (
          let block = Math.ceil(part.at / 4_096) * 4_096;
          block + 4_096 <= part.at + part.bytes.length;
          block += 4_096
        )
          expect(isZero(part.bytes.subarray(block - part.at, block - part.at + 4_096))).toBe(false);
    }),
    { numRuns: 200 },
  );
});

test("one byte among zeros is found, wherever it is", () => {
  for (const at of [0, 65_535, 65_536, 199_999]) {
    const bytes = Buffer.alloc(200_000);
    expect(isZero(bytes)).toBe(true);
    bytes[at] = 1;
    expect(isZero(bytes), `at ${at}`).toBe(false);
  }
});

describe("the ranges of data of a file", () => {
  test("are what the program prints", async () => {
    const extents = hostExtents(
      async (program, args) => {
        expect([program, ...args]).toEqual(["/svc-extents", "/disk.img"]);
        return "0 4096\n8192 100\n";
      },
      async () => "/svc-extents",
    );
    expect(await extents("/disk.img", 9_000)).toEqual([
      { at: 0, length: 4_096 },
      { at: 8_192, length: 100 },
    ]);
  });

  test("are all of it where the file system cannot tell, and an error where the program fails otherwise", async () => {
    const ending = (code: number) =>
      hostExtents(
        async () => {
          throw new Error(`/svc-extents /disk.img ended with ${code}: a reason`);
        },
        async () => "/svc-extents",
      );
    expect(await ending(3)("/disk.img", 9_000)).toEqual([{ at: 0, length: 9_000 }]);
    await expect(ending(1)("/disk.img", 9_000)).rejects.toThrow("ended with 1");
  });
});
