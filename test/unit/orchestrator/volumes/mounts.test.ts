/** What a create request is answered whose mounts are none. */

import { expect, test } from "vitest";
import { faultsOf } from "../../../../orchestrator/volumes/mount-paths.ts";
import { createResolveMounts } from "../../../../orchestrator/volumes/mounts.ts";

test.each([
  ["/data/", ": write '/data'"],
  ["//mnt//data", ": write '/mnt/data'"],
  ["/mnt/./data/../more", ": write '/mnt/more'"],
  ["data", ""],
  ["~/data", ""],
  ["", ""],
  ["/", ""],
  ["/..", ""],
  [`/${"x".repeat(256)}/`, ""],
])("the path %j is refused with the same place as it must be written, where there is one", (path, hint) => {
  expect(faultsOf([{ name: "v", path }])[0]?.ofPath).toBe(`must be an absolute, clean path${hint}`);
});

test("an id in place of a volume's name is answered with the name", async () => {
  const id = "6f0f3c7e-1d5c-4d8f-9d0a-0d6c2c7f0001";
  const resolve = createResolveMounts({
    volumes: { list: () => Promise.resolve([{ id, name: "data", nodeId: "n1" }]) },
    nodes: { get: () => ({ status: "ready" }) },
  } as never);
  const asked = (name: string) => resolve("p", [{ name, path: "/mnt/data" }]);
  await expect(asked(id.toUpperCase())).rejects.toThrow(
    "body field 'volumeMounts.0.name' is the id of a volume: write its name 'data'",
  );
  await expect(asked("other")).rejects.toThrow("body field 'volumeMounts.0.name' names no volume of the project");
  expect((await asked("data")).volumeMounts).toEqual([{ volumeId: id, name: "data", path: "/mnt/data" }]);
});
