/** One act on many sandboxes: whatever fails is told whole, with the request that the platform's log has. */

import { expect, test } from "vitest";
import { pageFile } from "../page-files.ts";

const { withEach } = await pageFile<{
  readonly withEach: (ids: readonly string[], work: (id: string) => Promise<void>) => Promise<void>;
}>("sandboxes/acts.ts");
// The page's own class, by which it knows a refusal of the platform.
const { Failed } = await pageFile<{
  readonly Failed: new (message: string, facts: { readonly status: number; readonly requestId?: string }) => Error;
}>("base/failed.ts");

test("every sandbox that an act failed on is named with its request, and equal reasons are said once", async () => {
  const ids = Array.from({ length: 8 }, (_none, index) => `i${index}`);
  const done: string[] = [];
  const acting = withEach(ids, (id) => {
    if (id === "i7") return Promise.resolve(void done.push(id));
    if (id === "i0") return Promise.reject(new Error("no connection"));
    return Promise.reject(new Failed(`sandbox '${id}' is paused`, { status: 409, requestId: `r-${id}` }));
  });
  const paused = ids.slice(1, 7).map((id) => `${id} (request_id r-${id})`);
  await expect(acting).rejects.toThrow(
    `7 of 8 failed. no connection: i0. sandbox '…' is paused: ${paused.join(", ")}.`,
  );
  expect(done).toEqual(["i7"]);
});

test("an act that succeeds on all tells nothing", async () => {
  await expect(withEach(["i0"], () => Promise.resolve())).resolves.toBeUndefined();
});
