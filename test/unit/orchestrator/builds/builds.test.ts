/** The meaning of a build request (names, tags, sizes, steps), the life of a build, and the first look at an archive. */

import { gzipSync } from "node:zlib";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { filesOf, readSteps } from "../../../../orchestrator/builds/steps.ts";
import { archiveKind } from "../../../../orchestrator/builds/uploads/archive-head.ts";
import { checkUploadUrl, uploadUrl } from "../../../../orchestrator/builds/uploads/url.ts";
import { readTemplateRequest, type TemplateAsk } from "../../../../orchestrator/templates/request.ts";
import { type BuildStatus, isFinished, mayBecome, statusesBefore } from "../../../../shared/states/build-status.ts";
import { tarOf } from "../../../support/images/tar.ts";

const project = {
  slug: "team",
  limits: { cpuCount: 4, memoryMb: 4096, diskMb: 20_000, contact: "us" },
  defaults: { cpuCount: 2, memoryMB: 1024, diskMb: 10_000, freeDiskMb: 12_000 },
};
const read = (body: TemplateAsk) => readTemplateRequest(body, project);

describe("names and tags", () => {
  test.each([
    [{ name: "app" }, "app", ["default"]],
    [{ name: " Team/App_2 " }, "app_2", ["default"]],
    [{ name: "app:v1" }, "app", ["v1"]],
    [{ name: "app:v1", tags: ["v2", "V1", "v2"] }, "app", ["v1", "v2"]],
    [{ name: "app", tags: ["v2"] }, "app", ["v2"]],
    [{ name: "app:default", tags: [] }, "app", ["default"]],
    [{ alias: "old" }, "old", ["default"]],
    [{ name: "new", alias: "old" }, "new", ["default"]],
  ])("%j is read as the name %s with the tags %j", (body, name, tags) => {
    expect(read(body)).toMatchObject({ name, tags });
  });

  test.each([
    [{}, "Name is required"],
    [{ name: " " }, "Name is required"],
    [{ name: "a b" }, "Invalid template reference"],
    [{ name: "a/b/c" }, "Invalid template reference"],
    [{ name: "a:b:c" }, "Invalid template reference"],
    [{ name: "a:" }, "Invalid template reference"],
    [{ name: "other/app" }, "namespace 'other' is not 'team'"],
    [{ name: "app", tags: [":v1"] }, "Invalid tag ':v1'"],
    [{ name: "app", tags: ["00000000-0000-4000-8000-000000000000"] }, "not a UUID"],
  ])("%j is refused", (body, words) => {
    expect(() => read(body)).toThrow(words);
  });
});

describe("sizes", () => {
  test.each([
    [{}, { cpuCount: 2, memoryMB: 1024, diskSizeMB: 12_000 }],
    [
      { cpuCount: 1, memoryMB: 128, minFreeDiskMb: 0 },
      { cpuCount: 1, memoryMB: 128, diskSizeMB: 10_000 },
    ],
    [
      { cpuCount: 4, memoryMB: 4096, minFreeDiskMb: 20_000 },
      { cpuCount: 4, memoryMB: 4096, diskSizeMB: 20_000 },
    ],
  ])("%j is read as %j", (body, resources) => {
    expect(read({ name: "app", ...body }).resources).toEqual(resources);
  });

  test.each([
    [{ cpuCount: 5 }, "CPU count must be at most 4"],
    [{ memoryMB: 4097 }, "Memory can't be higher than 4096 MiB"],
    [{ minFreeDiskMb: 20_001 }, "Free disk can't be higher than 20000 MiB"],
  ])("%j is too much", (body, words) => {
    const refused = () => read({ name: "app", ...body });
    expect(refused).toThrow(words);
    expect(refused).toThrow(expect.objectContaining({ status: 403 }) as Error);
  });
});

describe("steps", () => {
  const hash = "a".repeat(64);

  test("of each type are read, without the other fields that clients send", () => {
    const left = { forceUpload: true, gzip: true, resolveSymlinks: false };
    const steps = readSteps([
      { type: "RUN", args: ["echo 'a'"] },
      { type: "RUN", args: ["id", "root"], force: true },
      { type: "COPY", args: ["src/*", "dst/", "", ""], filesHash: hash, ...left },
      { type: "COPY", args: ["a", "b", "root", "0755"], filesHash: hash },
      { type: "ENV", args: ["A", "1", "B", "$A=\n"] },
      { type: "WORKDIR", args: ["app"] },
      { type: "USER", args: ["root"] },
    ]);
    expect(steps).toEqual([
      { number: 1, force: false, type: "RUN", command: "echo 'a'" },
      { number: 2, force: true, type: "RUN", command: "id", user: "root" },
      { number: 3, force: false, type: "COPY", source: "src/*", destination: "dst/", filesHash: hash },
      {
        number: 4,
        force: false,
        type: "COPY",
        source: "a",
        destination: "b",
        user: "root",
        mode: "0755",
        filesHash: hash,
      },
      {
        number: 5,
        force: false,
        type: "ENV",
        variables: [
          ["A", "1"],
          ["B", "$A=\n"],
        ],
      },
      { number: 6, force: false, type: "WORKDIR", path: "app" },
      { number: 7, force: false, type: "USER", user: "root" },
    ]);
    expect(filesOf({ is: "image", image: "a" }, steps)).toEqual([hash]);
    expect(filesOf({ is: "archive", filesHash: "b".repeat(64) }, steps)).toEqual(["b".repeat(64), hash]);
  });

  test.each([
    [{ type: "FROM", args: ["x"] }, "step 1: unknown type 'FROM'"],
    [{ type: "toString", args: [] }, "step 1: unknown type 'toString'"],
    [{ type: "RUN" }, "step 1 (RUN): 1 to 2 argument(s) expected, not 0"],
    [{ type: "RUN", args: [" "] }, "the command is empty"],
    [{ type: "RUN", args: ["a\0b"] }, "NUL"],
    [{ type: "COPY", args: ["a", "b"] }, "'filesHash' is required"],
    [{ type: "COPY", args: ["a"], filesHash: hash }, "2 to 4"],
    [{ type: "COPY", args: ["a", "b", "", "rwx"], filesHash: hash }, "'rwx' is not a file mode, such as 755 or u+x"],
    [{ type: "ENV", args: ["A"] }, "pairs"],
    [{ type: "ENV", args: ["A=B", "x"] }, "not the name of a variable"],
    [{ type: "WORKDIR", args: [] }, "1 argument(s) expected"],
    [{ type: "USER", args: ["a", "b"] }, "1 argument(s) expected"],
  ])("%j is refused", (step, words) => {
    expect(() => readSteps([step])).toThrow(words);
  });
});

test("a build's status only moves forward, starts once, and never leaves its final value", () => {
  const all: readonly BuildStatus[] = ["waiting", "building", "ready", "error"];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...all), { maxLength: 30 }), (wishes) => {
      let status: BuildStatus = "waiting";
      const seen: BuildStatus[] = [status];
      for (const wish of wishes) {
        // The store does the same: its statement moves a build only from a legal status.
        if (!statusesBefore(wish).includes(status)) continue;
        expect(mayBecome(status, wish)).toBe(true);
        status = wish;
        seen.push(status);
      }
      expect(new Set(seen).size).toBe(seen.length);
      expect(["waiting", "waiting,building", "waiting,building,ready", "waiting,building,error"]).toContain(
        seen.join(","),
      );
      if (isFinished(status)) for (const next of all) expect(mayBecome(status, next)).toBe(false);
    }),
  );
});

describe("archives", () => {
  const tar = tarOf({ "folder/a.txt": "hello" });
  test.each([
    ["plain", tar, "tar"],
    ["compressed", gzipSync(tar), "tar.gz"],
    ["cut off in the middle", gzipSync(tarOf({ a: "x".repeat(200_000) })).subarray(0, 700), "tar.gz"],
    ["empty", Buffer.alloc(1024), "tar"],
    ["nothing", Buffer.alloc(0), undefined],
    ["text", Buffer.from("hello ".repeat(200)), undefined],
    ["compressed text", gzipSync(Buffer.from("hello ".repeat(200))), undefined],
    ["broken gzip", Buffer.from([0x1f, 0x8b, 1, 2, 3]), undefined],
    ["a tar with a wrong sum", Buffer.concat([Buffer.from("x"), tar.subarray(1)]), undefined],
  ])("the kind of an upload that is %s is read from its bytes", (_what, bytes, kind) => {
    expect(archiveKind(bytes)).toBe(kind);
  });
});

test("an upload URL is valid for its own place until it expires", () => {
  const place = { templateId: "t".repeat(20), hash: "a".repeat(64) };
  const seed = "seed-seed-seed-seed";
  const key = { seeds: ["a newer seed", seed], now: 1_000_000 };
  const { searchParams, pathname, origin } = new URL(uploadUrl("https://api.test/", place, { ...key, seed }));
  const query = Object.fromEntries(searchParams);
  expect(origin + pathname).toBe(`https://api.test/uploads/${place.templateId}/${place.hash}`);
  expect(() => checkUploadUrl(place, query, key)).not.toThrow();
  expect(() => checkUploadUrl(place, query, { ...key, now: key.now + 3_601_000 })).toThrow("expired");
  const wrong = [
    [{ ...place, hash: "b".repeat(64) }, query],
    [{ ...place, templateId: "u".repeat(20) }, query],
    [place, { ...query, expires: "9999999999" }],
    [place, { ...query, expires: ["1", "2"] }],
    [place, { expires: query.expires }],
    [place, {}],
  ] as const;
  for (const [where, given] of wrong)
    expect(() => checkUploadUrl(where, given, key)).toThrow("was not signed by this platform");
});
