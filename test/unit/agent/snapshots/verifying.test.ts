import { describe, expect, test } from "vitest";
import type { Manifest } from "../../../../agent/snapshots/store/manifest.ts";
import { createVerifying } from "../../../../agent/snapshots/store/verifying.ts";

const MANIFEST = {} as Manifest;

function world() {
  const clock = { now: 0 };
  const begun: { end: () => void; fail: (error: Error) => void; signal: AbortSignal }[] = [];
  const verify = (_id: string, _manifest: Manifest, signal: AbortSignal) =>
    new Promise<void>((end, fail) => void begun.push({ end, fail, signal }));
  return { clock, begun, ...createVerifying({ verify }, () => clock.now) };
}

describe("checks of one memory image", () => {
  test("restores at the same time share one, and so does one soon after", async () => {
    const { begin, begun, clock } = world();
    const [first, second] = [begin("a", MANIFEST, true), begin("a", MANIFEST, true)];
    expect(begun).toHaveLength(1);
    begun[0]?.end();
    await Promise.all([first.done, second.done]);
    clock.now = 9_000;
    await begin("a", MANIFEST, true).done;
    expect(begun).toHaveLength(1);
    clock.now = 10_001;
    begin("a", MANIFEST, true);
    expect(begun).toHaveLength(2);
  });

  test("another image, and one whose files were touched, has its own", () => {
    const { begin, begun } = world();
    begin("a", MANIFEST, true);
    begin("b", MANIFEST, true);
    begin("a", MANIFEST, false);
    expect(begun).toHaveLength(3);
  });

  test("damage is told to all that share it, and the next restore looks again", async () => {
    const { begin, begun } = world();
    const both = [begin("a", MANIFEST, true), begin("a", MANIFEST, true)].map(({ done }) =>
      expect(done).rejects.toThrow("changed"),
    );
    begun[0]?.fail(new Error("changed"));
    await Promise.all(both);
    begin("a", MANIFEST, true);
    expect(begun).toHaveLength(2);
  });

  test("it ends when the last one that needs it has given up, and does not count then", () => {
    const { begin, begun } = world();
    const [first, second] = [begin("a", MANIFEST, true), begin("a", MANIFEST, true)];
    first.abandon();
    first.abandon();
    expect(begun[0]?.signal.aborted).toBe(false);
    second.abandon();
    expect(begun[0]?.signal.aborted).toBe(true);
    begin("a", MANIFEST, true);
    expect(begun).toHaveLength(2);
  });
});
