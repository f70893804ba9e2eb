/** Values that are sealed with a key, for one row each. */

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../../../shared/http/errors.ts";
import { createSeal } from "../../../../../shared/program/sealing/seal.ts";

describe("seals", () => {
  const seal = createSeal("a key of some length", "SVC_ENCRYPTION_KEY");

  test("open what they closed, and never the same text twice", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const closed = seal.close(text, "i1");
        expect(closed).not.toBe(seal.close(text, "i1"));
        expect(seal.open(closed, "i1")).toBe(text);
      }),
    );
  });

  test("do not open in another row, under another key, or damaged", () => {
    const closed = seal.close("secret", "i1");
    expect(() => seal.open(closed, "i2")).toThrow("SVC_ENCRYPTION_KEY");
    expect(() => createSeal("another key of some length", "SVC_ENCRYPTION_KEY").open(closed, "i1")).toThrow(
      "SVC_ENCRYPTION_KEY",
    );
    expect(() => seal.open(`${closed.slice(0, -4)}AAA=`, "i1")).toThrow();
    for (const damaged of ["v1:AAAA", `${seal.prefix}AAAA`, "v2:AAAA", "v3:a:AAAA", ""])
      expect(() => seal.open(damaged, "i1"), damaged).toThrow("damaged");
  });

  test("that do not open are a fault of the platform to a caller, in their own words", () => {
    const error = (() => {
      try {
        return seal.open("v1:AAAA", "i1");
      } catch (reason) {
        return AppError.from(reason);
      }
    })();
    expect(error).toMatchObject({ code: "internal", message: "a sealed value is damaged" });
  });

  test("under an earlier key open, also those from before values had the id of their key, and new ones are under the current key", () => {
    const closed = seal.close("secret", "i1");
    const former = `v1:${closed.slice(seal.prefix.length)}`;
    const next = createSeal("the next key of some length", "SVC_ENCRYPTION_KEY", [
      "one between",
      "a key of some length",
    ]);
    for (const sealed of [closed, former]) {
      expect(next.open(sealed, "i1")).toBe("secret");
      expect(() => next.open(sealed, "i2")).toThrow("does not open");
    }
    expect(next.close("secret", "i1").startsWith(next.prefix)).toBe(true);
    expect(next.prefix).not.toBe(seal.prefix);
    expect(() => seal.open(next.close("secret", "i1"), "i1")).toThrow("does not open");
  });
});
