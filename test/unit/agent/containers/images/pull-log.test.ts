import { expect, test } from "vitest";
import { createPullLog } from "../../../../../agent/containers/images/pull-log.ts";

test("the log of a pull has few lines and includes the error", () => {
  const lines: string[] = [];
  const log = createPullLog((line) => lines.push(line));
  const say = (value: unknown) => log.push(`${JSON.stringify(value)}\n`);
  say({ status: "Pulling from library/x", id: "1" });
  for (let current = 0; current <= 100; current++)
    say({ status: "Downloading", id: "l1", progressDetail: { current: current * 1024 ** 2, total: 100 * 1024 ** 2 } });
  expect(lines[0]).toBe("Pulling from library/x (1)");
  expect(lines.slice(1)).toHaveLength(10);
  expect(lines.at(-1)).toBe("Downloading 100 % of 100.0 MiB");
  log.push('{"errorDetail":{},"error":"unauth');
  expect(log.error).toBeUndefined();
  log.push('orized"}\nnot json\n');
  expect(log.error).toBe("unauthorized");
});
