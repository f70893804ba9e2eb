/** What the console does when the platform does not answer. */

import { expect, test } from "vitest";
import { untilAnswered } from "../../../console/src/base/again.ts";
import { Failed } from "../../../console/src/base/failed.ts";
import { uploadAll } from "../../../console/src/sandbox/files/upload.ts";

const failing = (status: number) => new Failed(`answered ${status}`, { status });

/** Sends that fail with these statuses, and then succeed. */
function sends(...statuses: readonly number[]) {
  const left = [...statuses];
  const waits: number[] = [];
  return {
    waits,
    send: () => {
      const status = left.shift();
      return status === undefined ? Promise.resolve("done") : Promise.reject(failing(status));
    },
    waiting: { lost: () => undefined, wait: (ms: number) => Promise.resolve(void waits.push(ms)) },
  };
}

test("a request is sent again, after longer and longer waits, while nothing answers", async () => {
  const { send, waits, waiting } = sends(0, 502, 503, 504);
  expect(await untilAnswered(send, waiting)).toBe("done");
  expect(waits).toEqual([500, 1_000, 2_000, 4_000]);
});

test.each([400, 401, 404, 409, 500])("a request that is refused with %i is not sent again", async (status) => {
  const { send, waits, waiting } = sends(status);
  await expect(untilAnswered(send, waiting)).rejects.toThrow(`answered ${status}`);
  expect(waits).toEqual([]);
});

test("a request that nothing answers for a minute fails with its last failure", async () => {
  const { send, waits, waiting } = sends(0, 0, 0, 0, 0, 0, 0, 503);
  await expect(untilAnswered(send, waiting)).rejects.toThrow("answered 503");
  expect(waits).toHaveLength(7);
});

const files = ["a", "b", "c"].map((name) => ({ name }));

test("a file whose upload was cut is sent again, and the others once", async () => {
  const stored: string[] = [];
  const told: string[] = [];
  await uploadAll({
    files,
    store: ({ name }) => {
      stored.push(name);
      return stored.length === 2 ? Promise.reject(failing(0)) : Promise.resolve();
    },
    tell: (text) => void told.push(text),
    wait: () => Promise.resolve(),
  });
  expect(stored).toEqual(["a", "b", "b", "c"]);
  expect(told).toContain("the connection was lost, sending b (2 of 3) again from its beginning …");
  expect(told.at(-1)).toBe("3 files were uploaded");
});

test.each([520, 522, 524, 530])("Cloudflare's %i means that the platform was not reached", async (status) => {
  const { send, waits, waiting } = sends(status);
  expect(await untilAnswered(send, waiting)).toBe("done");
  expect(waits).toEqual([500]);
});

test("a file that the browser cannot read is not sent again, and says what each file has become", async () => {
  let sent = 0;
  const uploading = uploadAll({
    files,
    store: () => Promise.reject(new Error(`cannot be read, try ${++sent}`)),
    tell: () => undefined,
  });
  await expect(uploading).rejects.toThrow(/^a was not uploaded; .* Not sent: b, c\. cannot be read, try 1$/);
});

test("an upload that is refused says what each file has become", async () => {
  const uploading = uploadAll({
    files,
    store: ({ name }) => (name === "b" ? Promise.reject(failing(507)) : Promise.resolve()),
    tell: () => undefined,
  });
  await expect(uploading).rejects.toThrow(
    "b was not uploaded; a file of that name may have its beginning. Uploaded before it: a. Not sent: c. answered 507",
  );
});
