import { expect, test } from "vitest";
import { perImage } from "../../../../../agent/containers/images/per-image.ts";

test("an image is asked for once, and after a failure again", async () => {
  const asked: string[] = [];
  const known = perImage((image) => {
    asked.push(image);
    return asked.length === 1 ? Promise.reject(new Error("Docker is away")) : Promise.resolve(image);
  });
  await expect(known("one")).rejects.toThrow("Docker is away");
  expect([await known("one"), await known("one"), await known("two")]).toEqual(["one", "one", "two"]);
  expect(asked).toEqual(["one", "one", "two"]);
});

test("images of snapshots without end are not all remembered", async () => {
  let asked = 0;
  const known = perImage((image) => Promise.resolve(`${image} ${++asked}`));
  const first = await known("snapshot 0");
  for (let number = 1; number <= 2_000; number++) await known(`snapshot ${number}`);
  expect(await known("snapshot 0")).not.toBe(first);
});
