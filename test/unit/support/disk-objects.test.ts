/** What the leak counts see of disks: mounts, loop devices and images of containers that are gone. */

import { expect, test } from "vitest";
import { strays } from "../../support/platform/disk-objects.ts";

const root = "/var/lib/svc-test/agent/disks";
const [known, gone] = ["a", "b"].map((digit) => digit.repeat(64)) as [string, string];
const mount = (path: string) => `30:45 27 7:1 / ${path} rw,nosuid - ext4 /dev/loop1 rw`;

test("a mount, a loop device and an image of a container that is gone are strays, those of a container are not", () => {
  const of = (id: string) => ({
    root,
    mounts: [mount(`${root}/${id}`), mount(`${root}/${id}/layer/merged`)],
    loops: [`${root}/${id}.img`, `${root}/${id}.img (deleted)`],
    names: [id, `${id}.img`],
  });
  expect(strays(of(known), [{ id: known }])).toEqual({ strayMounts: 0, strayLoops: 0, strayDisks: 0 });
  expect(strays(of(gone), [{ id: known }])).toEqual({ strayMounts: 2, strayLoops: 2, strayDisks: 2 });
});

test("what belongs to all disks, to the agent's probe, to volumes and to other programs is no stray", () => {
  const found = {
    root,
    mounts: [mount("/"), mount(`${root}/probe`), mount(`${root}/volumes/1`), mount(`/var/lib/other/disks/${gone}`)],
    loops: ["/var/lib/snapd/one.snap", `${root}/probe.img`],
    names: ["stored", "formatted", "volumes", "probe", "probe.img"],
  };
  expect(strays(found, [])).toEqual({ strayMounts: 0, strayLoops: 0, strayDisks: 0 });
});
