import { expect, test } from "vitest";
import { createLines } from "../../../../../agent/sandboxes/pool/lines.ts";

test("the first one that fits is taken out of its line, and of no other", () => {
  const lines = createLines<string>();
  for (const one of ["small", "large", "larger"]) lines.join("a", one);
  lines.join("b", "large");
  expect(lines.take("a", (one) => one.startsWith("large"))).toBe("large");
  expect(lines.take("a", (one) => one.startsWith("large"))).toBe("larger");
  expect(lines.take("a", (one) => one.startsWith("large"))).toBeUndefined();
  expect(lines.take("b", () => true)).toBe("large");
});

test("nothing is kept of a key for which nobody waits any more", () => {
  const lines = createLines<string>();
  for (let key = 0; key < 100; key++) {
    lines.join(`taken ${key}`, "one");
    lines.join(`left ${key}`, "one");
    lines.take(`taken ${key}`, () => true);
    lines.leave(`left ${key}`, "one");
  }
  expect(lines.size).toBe(0);
});
