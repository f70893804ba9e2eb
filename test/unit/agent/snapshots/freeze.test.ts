/** How long a snapshot waits for its sandbox to stand still. */

import { setImmediate as later } from "node:timers/promises";
import { expect, test } from "vitest";
import { freezeBeside, freezeForSnapshot } from "../../../../agent/snapshots/take/freeze.ts";
import { AppError } from "../../../../shared/http/errors.ts";

/** A control group of which the given tries fail. */
function groupThatFails(errors: readonly Error[]) {
  const seen = { tries: 0 };
  const freeze = () => {
    const error = errors[seen.tries];
    seen.tries++;
    return error === undefined ? Promise.resolve() : Promise.reject(error);
  };
  return { seen, freeze };
}

const late = new AppError("internal", "the container did not end or freeze within 2000 ms");

test("a sandbox has more time to stand still while a process is inside a long call of the kernel", async () => {
  const { seen, freeze } = groupThatFails([late, late]);
  await freezeForSnapshot({ freeze });
  expect(seen.tries).toBe(3);
});

test("a sandbox that does not stand still goes on, and the answer says to try again", async () => {
  const { seen, freeze } = groupThatFails(Array.from({ length: 9 }, () => late));
  const message =
    "a process of the sandbox did not stand still within 10 s, as while it waits for a slow disk; it goes on running: try again";
  await expect(freezeForSnapshot({ freeze })).rejects.toMatchObject({ code: "unavailable", message });
  expect(seen.tries).toBe(5);
});

test("a sandbox that has just ended is not frozen again", async () => {
  const { seen, freeze } = groupThatFails([new Error("ENOENT")]);
  await expect(freezeForSnapshot({ freeze })).rejects.toThrow("ENOENT");
  expect(seen.tries).toBe(1);
});

test("a sandbox whose pause fails meanwhile is not frozen after it was thawed", async () => {
  let tries = 0;
  const freeze = async () => {
    await later();
    tries++;
    if (tries < 3) throw late;
  };
  const closing = Promise.reject(new Error("the firewall refuses"));
  await expect(freezeBeside({ freeze }, closing)).rejects.toThrow("the firewall refuses");
  expect(tries).toBe(3);
  await later();
  expect(tries).toBe(3);
});

test("a sandbox that does not stand still fails its pause once the work beside it has ended", async () => {
  const { freeze } = groupThatFails([new Error("ENOENT")]);
  let ended = false;
  const closing = later().then(() => {
    ended = true;
  });
  await expect(freezeBeside({ freeze }, closing)).rejects.toThrow("ENOENT");
  expect(ended).toBe(true);
});
