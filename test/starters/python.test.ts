/**
 * The template desktop, driven by Python's package e2b-desktop: each of its methods. SVC_TEST_PYTHON names an interpreter that has the
 * package, because a machine without Python's registry has none.
 */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { checkout, openPlatform } from "../support/platform/platform.ts";

openPlatform();
const python = process.env.SVC_TEST_PYTHON;

test.skipIf(python === undefined)(
  "every method of Python's package does on a desktop what it says (only with SVC_TEST_PYTHON)",
  async () => {
    const { stdout } = await promisify(execFile)(python ?? "", [`${checkout}test/starters/desktop.py`]);
    expect(JSON.parse(stdout)).toEqual({
      screen: { size: [1024, 768], bytes: true, stream: true },
      mouse: {
        at: [
          [200, 300],
          [600, 500],
        ],
        pressed: [1, 3, 2, 1, 1, 4, 4, 5, 3, 1],
      },
      keyboard: { text: "it's 42%", title: true, current: true },
      opened: true,
      stream: { url: true, second: true, listens: true, stopped: true },
      sessions: 1,
      other: [1280, 720],
    });
  },
);
