/** The published SDK with the exports that `scripts/up` prints and nothing else: where its requests go. */

import { expect, test } from "vitest";
import { checkout, openPlatform, readEnvFile } from "../../support/platform/platform.ts";
import { recordedVolume } from "../../support/volumes/recorded-volume.ts";

const platform = openPlatform();
const suffix = platform.instance === "" ? "" : `-${platform.instance}`;
const printed = [...readEnvFile(`${checkout}.svc${suffix}/env`)].filter(([name]) => name.startsWith("E2B_"));

test("a client makes, writes, mounts and reads a volume, and connects to this machine's API and edge alone", async () => {
  const recorded = await recordedVolume(Object.fromEntries(printed), { mount: true });
  expect(recorded).toEqual({
    read: "stays at home",
    mounted: "stays at home",
    hosts: [platform.apiUrl, platform.sandboxUrl].map((url) => new URL(url).host).sort(),
  });
});
