import { expect, test } from "vitest";
import { createOrchestrators, urlsIn } from "../../../../agent/joining/orchestrators.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });
const A = "https://a:3003";
const B = "https://b:3003";
const C = "https://c:3003";

/** Asks them; those in `away` throw the error. `asked` has what was asked, in order. */
function world(setting: string) {
  const away = new Map<string, AppError>();
  const asked: string[] = [];
  const orchestrators = createOrchestrators(setting, log);
  const ask = () =>
    orchestrators.ask((url) => {
      asked.push(url);
      const error = away.get(url);
      return error === undefined ? Promise.resolve(url) : Promise.reject(error);
    });
  return { away, asked, ask };
}

test("the addresses of a setting stand between commas, with spaces and slashes at their ends", () => {
  expect(urlsIn("https://a:3003/, https://b:3003")).toEqual([A, B]);
});

test("a node goes to the next orchestrator when one does not answer, and stays there when the first is back", async () => {
  const { away, asked, ask } = world(`${A},${B},${C}`);
  expect(await ask()).toBe(A);
  away.set(A, new AppError("node_unreachable", "away")).set(B, new AppError("internal", "its database is away"));
  expect(await ask()).toBe(C);
  away.clear();
  expect(await ask()).toBe(C);
  expect(asked).toEqual([A, A, B, C, C]);
});

test("when none answers each is asked once, and the error is the last one's", async () => {
  const { away, asked, ask } = world(`${A},${B}`);
  away.set(A, new AppError("node_unreachable", "a is away")).set(B, new AppError("node_unreachable", "b is away"));
  await expect(ask()).rejects.toThrow("b is away");
  expect(asked).toEqual([A, B]);
});

test("a refusal is an answer: no other orchestrator is asked", async () => {
  const { away, asked, ask } = world(`${A},${B}`);
  away.set(A, new AppError("conflict", "another agent is this node"));
  await expect(ask()).rejects.toThrow("another agent is this node");
  expect(asked).toEqual([A]);
});

test("what one does not have another may, and the node stays with the one that has answered", async () => {
  const orchestrators = createOrchestrators(`${A},${B},${C}`, log);
  const asked: string[] = [];
  const find = (where: string | undefined) =>
    orchestrators.ask(
      (url) => {
        asked.push(url);
        return url === where ? Promise.resolve(url) : Promise.reject(new AppError("not_found", `not at ${url}`));
      },
      () => true,
    );
  expect(await find(C)).toBe(C);
  expect(asked.splice(0)).toEqual([A, B, C]);
  expect(orchestrators.current).toBe(A);
  await expect(find(undefined)).rejects.toThrow(`not at ${C}`);
  expect(asked).toEqual([A, B, C]);
});
