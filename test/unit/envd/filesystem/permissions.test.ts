import { expect, test } from "vitest";
import { permissionBits, permissionString } from "../../../../envd/filesystem/permissions.ts";

test.each([
  [0o100644, "-rw-r--r--"],
  [0o100755, "-rwxr-xr-x"],
  [0o100000, "----------"],
  [0o040755, "drwxr-xr-x"],
  [0o041777, "dtrwxrwxrwx"],
  [0o042775, "dgrwxrwxr-x"],
  [0o104755, "urwxr-xr-x"],
  [0o106755, "ugrwxr-xr-x"],
  [0o120777, "Lrwxrwxrwx"],
  [0o010644, "prw-r--r--"],
  [0o140755, "Srwxr-xr-x"],
  [0o020666, "Dcrw-rw-rw-"],
  [0o060660, "Drw-rw----"],
])("mode %o is written %s", (mode, text) => {
  expect(permissionString(mode)).toBe(text);
});

test("only permission bits are part of the mode", () => {
  expect(permissionBits(0o100644)).toBe(420);
  expect(permissionBits(0o041755)).toBe(493);
});
