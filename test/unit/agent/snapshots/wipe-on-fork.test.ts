import { expect, test } from "vitest";
import { bytesField, fieldsOf, numberField } from "../../../../agent/snapshots/criu/protobuf.ts";
import { withWipedAreas } from "../../../../agent/snapshots/criu/wipe-on-fork.ts";

const HEAD = Buffer.from("8bytes..");
const [WIPE_ON_FORK, DO_NOT_NEED, DO_NOT_NEED_LOCKED, NO_HUGE_PAGES] = [1 << 18, 1 << 4, 1 << 24, 1 << 15];

/** The image of a process with these areas: start, flags, advice if any. */
function imageOf(areas: readonly (readonly [number, number, number?])[]): Buffer {
  const parts = areas.map(([start, flags, advice]) => {
    const fields = [numberField(1, start), numberField(6, flags), numberField(8, 2 ** 32 - 1)];
    return bytesField(14, Buffer.concat(advice === undefined ? fields : [...fields, numberField(9, advice)]));
  });
  const message = Buffer.concat([numberField(1, 7), ...parts, numberField(15, 1)]);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(message.length);
  return Buffer.concat([HEAD, length, message]);
}

test("areas that are wiped on fork are wiped on restore too, locked ones by the advice for those, and no others", () => {
  const before = [
    [1, 0x22, WIPE_ON_FORK],
    [2, 0x22],
    [3, 0x2022, WIPE_ON_FORK | NO_HUGE_PAGES],
    [4, 0x22, NO_HUGE_PAGES],
  ] as const;
  const after = [
    [1, 0x22, WIPE_ON_FORK | DO_NOT_NEED],
    [2, 0x22],
    [3, 0x2022, WIPE_ON_FORK | NO_HUGE_PAGES | DO_NOT_NEED_LOCKED],
    [4, 0x22, NO_HUGE_PAGES],
  ] as const;
  expect(withWipedAreas(imageOf(before))).toEqual(imageOf(after));
});

test("the image of a process without such areas is not written again", () => {
  expect(
    withWipedAreas(
      imageOf([
        [1, 0x22],
        [2, 0x22, NO_HUGE_PAGES],
      ]),
    ),
  ).toBeUndefined();
});

test("the fields of an image lie in it, and are no copies; a number is taken modulo 2^32", () => {
  const message = Buffer.concat([bytesField(14, Buffer.from("area")), numberField(1, 2 ** 40 + 7)]);
  const [area, start] = fieldsOf(message);
  expect(area?.content.toString()).toBe("area");
  expect([area?.content.buffer, area?.content.byteOffset]).toEqual([message.buffer, message.byteOffset + 2]);
  expect(start).toMatchObject({ number: 1, value: 7 });
});

test("an image of a process's memory that is cut off is refused", () => {
  const image = imageOf([[1, 0x22, WIPE_ON_FORK]]);
  expect(() => withWipedAreas(image.subarray(0, -1))).toThrow("cut off");
  expect(() => withWipedAreas(image.subarray(0, 6))).toThrow("cut off");
  expect(fieldsOf(image.subarray(12))).toHaveLength(3);
});
