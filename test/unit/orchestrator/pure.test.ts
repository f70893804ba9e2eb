/** Small pure files: template references, page cursors, metadata, rate limits, pools, seals. */

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRateLimiter } from "../../../orchestrator/access/rate-limit.ts";
import { busiest, canBePooled, createPools } from "../../../orchestrator/nodes/warm-pools.ts";
import { fromToken, parseMetadata, toToken } from "../../../orchestrator/sandboxes/lists.ts";
import type { Build } from "../../../orchestrator/store/builds/record.ts";
import { parseTemplateReference } from "../../../orchestrator/templates/reference.ts";
import { createSeal } from "../../../shared/program/seal.ts";

describe("template references", () => {
  test.each([
    ["base", { namespace: undefined, name: "base", tag: "default" }],
    [" Base ", { namespace: undefined, name: "base", tag: "default" }],
    ["base:default", { namespace: undefined, name: "base", tag: "default" }],
    ["team/my_app-2:v1.0", { namespace: "team", name: "my_app-2", tag: "v1.0" }],
  ])("'%s' is read as %j", (text, expected) => {
    expect(parseTemplateReference(text)).toEqual(expected);
  });

  test.each(["", " ", "a b", "a/b/c", "/a", "a/", "a:", ":a", "a:b:c", "ä", "a:00000000-0000-4000-8000-000000000000"])(
    "'%s' is refused",
    (text) => {
      expect(() => parseTemplateReference(text)).toThrow("Invalid template reference");
    },
  );
});

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

describe("rate limits", () => {
  test("allow a burst, then as many calls as the rate gives back, with Retry-After in whole seconds", () => {
    const clock = { now: 0 };
    const limiter = createRateLimiter(() => clock.now);
    const rate = { perSecond: 2, burst: 3 };
    for (const remaining of [2, 1, 0]) expect(limiter.take("a", rate)).toMatchObject({ limit: 3, remaining });
    expect(() => limiter.take("a", rate)).toThrow("Rate limit exceeded");
    try {
      limiter.take("a", rate);
    } catch (error) {
      expect(error).toMatchObject({ code: "rate_limited", retryAfterSeconds: 1 });
    }
    expect(limiter.take("b", rate).remaining).toBe(2);
    clock.now = 500;
    expect(limiter.take("a", rate).remaining).toBe(0);
    clock.now = 60_000;
    expect(limiter.take("a", rate)).toMatchObject({ remaining: 2, resetSeconds: 1 });
  });
});

describe("pools", () => {
  const base: Build = {
    id: "b1",
    templateId: "t",
    status: "ready",
    image: "i",
    cpuCount: 1,
    memoryMB: 128,
    diskSizeMB: 0,
    envdVersion: "0",
    defaultUser: undefined,
    defaultWorkdir: undefined,
    kind: "template",
    nodeId: undefined,
    memory: false,
    sourceSandboxId: undefined,
    wantedTags: [],
    sealedSettings: undefined,
    parentBuildId: undefined,
    snapshotId: undefined,
    size: undefined,
    startedAt: undefined,
    deadlineAt: undefined,
    withAccess: false,
    accepted: false,
    logOffset: 0,
    volumeMounts: [],
    reason: undefined,
    createdAt: 0,
    updatedAt: 0,
    finishedAt: 0,
  };
  const sizes = (targets: readonly { readonly size: number }[]) => targets.map(({ size }) => size);

  test("of the base template are never empty, grow with a burst up to the ceiling, and shrink when the burst is over", () => {
    const clock = { now: 0 };
    const pools = createPools({ base, platform: [], baseSize: 3, keptSize: 0, ceiling: 8, now: () => clock.now });
    expect(sizes(pools.targets("n1", 1))).toEqual([3]);
    for (let index = 0; index < 6; index++) pools.used(base);
    expect(sizes(pools.targets("n1", 1))).toEqual([6]);
    for (let index = 0; index < 60; index++) pools.used(base);
    expect(sizes(pools.targets("n1", 1))).toEqual([8]);
    expect(sizes(pools.targets("n1", 4))).toEqual([2]);
    clock.now = 301_000;
    expect(sizes(pools.targets("n1", 1))).toEqual([3]);
  });

  test("of another build exist once it is started often enough", () => {
    const pools = createPools({ base, platform: [], baseSize: 1, keptSize: 0, ceiling: 8, now: () => 0 });
    const other = { ...base, id: "b2" };
    pools.used(other);
    expect(pools.targets("n1", 1)).toHaveLength(1);
    pools.used(other);
    pools.used(other);
    expect(pools.targets("n1", 1).map(({ build, size }) => [build.buildId, size])).toEqual([
      ["b1", 1],
      ["b2", 3],
    ]);
  });

  test("of a template of the platform are kept without demand, follow its next build, and end with it", () => {
    const clock = { now: 0 };
    const pools = createPools({ base, platform: [], baseSize: 1, keptSize: 2, ceiling: 8, now: () => clock.now });
    const kept = () => pools.targets("n1", 1).map(({ build, size }) => [build.buildId, size]);
    const first = { ...base, id: "b2", nodeId: "n1" };
    pools.keep(first);
    clock.now = 1_000_000;
    expect(kept()).toEqual([
      ["b1", 1],
      ["b2", 2],
    ]);
    expect(pools.targets("n2", 1)).toHaveLength(1);
    for (let index = 0; index < 5; index++) pools.used(first);
    expect(kept()[1]).toEqual(["b2", 5]);
    pools.replaced(["b2"], { ...first, id: "b3" });
    clock.now = 2_000_000;
    expect(kept()[1]).toEqual(["b3", 2]);
    pools.gone(["b3"]);
    expect(kept()).toEqual([["b1", 1]]);
    pools.keep({ ...first, snapshotId: "s1" });
    expect(kept()).toEqual([["b1", 1]]);
  });

  test.each([
    ["an image", {}, true],
    ["a template with its memory", { snapshotId: "s1", memory: true }, true],
    ["a template whose memory was not taken", { snapshotId: "s1" }, false],
    ["a snapshot of a sandbox", { kind: "snapshot", memory: true }, false],
  ] as const)("%s has a pool: %j, %j", (_what, more, pooled) => {
    expect(canBePooled({ ...base, ...more })).toBe(pooled);
  });

  test.each([
    [[], 0],
    [[1], 1],
    [[0, 5, 10], 3],
    [[0, 11, 22], 1],
    [[0, 1, 2, 20, 21], 3],
  ])("are sized by the busiest span: of starts at %j it has %i", (starts, most) => {
    expect(busiest(starts, 10)).toBe(most);
  });
});

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
