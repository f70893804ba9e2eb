import { describe, expect, test } from "vitest";
import { END, KEEPALIVE, lineOf } from "../../../../interpreter/http/lines.ts";
import type { KernelEvent } from "../../../../interpreter/kernels/kernel.ts";

const now = () => new Date("2026-01-02T03:04:05.678Z");
const line = (event: KernelEvent) => lineOf(event, now);
const result = (bundle: Record<string, string>, main = true) =>
  line({ type: "result", bundle: new Map(Object.entries(bundle)), main });

test("output is one line of ASCII with a time, whatever it has in it", () => {
  const text = "é\n\u2028\u0085\u007f😀";
  const sent = line({ type: "output", stream: "stdout", text });
  expect(sent).toBe(
    '{"type":"stdout","text":"\\u00e9\\n\\u2028\\u0085\\u007f\\ud83d\\ude00","timestamp":"2026-01-02T03:04:05.678Z"}\n',
  );
  expect((JSON.parse(sent) as { text: string }).text).toBe(text);
});

test("the kernel's own time of an output stays as it is", () => {
  const timestamp = "2026-01-02T03:04:05.678901+00:00";
  expect(line({ type: "output", stream: "stderr", text: "x", timestamp })).toContain(`"timestamp":"${timestamp}"`);
});

test("count, error, end and keepalive are as clients expect them", () => {
  expect(line({ type: "count", count: 2 })).toBe('{"type":"number_of_executions","execution_count":2}\n');
  expect(line({ type: "error", name: "E", value: "v", traceback: "t\n" })).toBe(
    '{"type":"error","name":"E","value":"v","traceback":"t\\n"}\n',
  );
  expect([END, KEEPALIVE]).toEqual(['{"type":"end_of_execution"}\n', '{"type":"keepalive"}\n']);
});

describe("a result", () => {
  test("has a field for each known format, and all others in extra", () => {
    expect(result({ "text/plain": '"1"', "text/html": '"<b>"', "x/y": '{"a":1.0}' }, false)).toBe(
      '{"type":"result","text":"1","html":"<b>","extra":{"x/y":{"a":1.0}},"is_main_result":false}\n',
    );
  });

  test.each([
    [String.raw`"'x'"`, '"x"'],
    [String.raw`"\"x\""`, '"x"'],
    [String.raw`"'x\""`, String.raw`"'x\""`],
    [`"'"`, `"'"`],
    [`"''"`, '""'],
  ])("with the text %s shows %s", (given, shown) => {
    expect(result({ "text/plain": given })).toContain(`"text":${shown},`);
  });

  test("passes numbers on as the kernel wrote them", () => {
    const chart = '{"a": [5.0, 12345678901234567890, 1e-7, -0.0]}';
    for (const given of [chart, JSON.stringify(chart)]) {
      for (const [mime, field] of [
        ["e2b/chart", "chart"],
        ["e2b/data", "data"],
        ["application/json", "json"],
      ] as const)
        expect(result({ [mime]: given })).toContain(`"${field}":${chart},`);
    }
  });

  test("of several lines of JSON is one line", () => {
    const sent = result({ "e2b/data": JSON.stringify('{\n  "é": 1\r\n}') });
    expect(sent.trimEnd()).not.toMatch(/[\r\n]/);
    expect((JSON.parse(sent) as { data: unknown }).data).toEqual({ é: 1 });
  });

  test.each(['"no JSON"', '"NaN"', "5", '"[NaN]"', "null", '"\\"text\\""'])(
    "has no chart, data or JSON for %s, which is no object",
    (given) => {
      expect(result({ "application/json": given, "e2b/chart": given, "text/plain": '"1"' })).toBe(
        '{"type":"result","text":"1","extra":{},"is_main_result":true}\n',
      );
    },
  );
});
