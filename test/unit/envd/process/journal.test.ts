import { expect, test } from "vitest";
import { outputJournal } from "../../../../envd/process/output-journal.ts";
import { Journal } from "../../../../envd/runtime/journal.ts";

const lines = (journal: Journal) => journal.read(0, 10_000).entries.map(({ message }) => message);

test("entries of the journal are numbered, and a reader goes on where it was", () => {
  const journal = new Journal(() => 0);
  for (const message of ["a", "b", "c"]) journal.write("info", "test", message, { n: 1 });
  const first = journal.read(0, 2);
  expect(first).toMatchObject({
    entries: [{ seq: 1, message: "a", timestamp: "1970-01-01T00:00:00.000Z" }, { seq: 2 }],
    next: 2,
  });
  expect(journal.read(first.next, 10)).toMatchObject({ entries: [{ seq: 3 }], next: 3 });
  expect(journal.read(3, 10)).toEqual({ entries: [], next: 3 });
});

test("the journal is bounded, and the oldest entries leave first", () => {
  const journal = new Journal(() => 0);
  for (let i = 0; i < 5_000; i += 1) journal.write("info", "test", "x".repeat(1_000));
  const { entries } = journal.read(0, 10_000);
  expect(entries.length).toBeLessThan(1_024);
  expect(entries.length).toBeGreaterThan(100);
  expect(entries.at(-1)?.seq).toBe(5_000);
});

test("clearing the journal forgets entries and not the numbering", () => {
  const journal = new Journal(() => 0);
  journal.write("info", "test", "a");
  journal.clear();
  journal.write("info", "test", "b");
  expect(journal.read(0, 10).entries).toMatchObject([{ seq: 2, message: "b" }]);
});

test("output becomes lines, across chunks, the last one at the end", () => {
  const journal = new Journal(() => 0);
  const output = outputJournal(journal, 7);
  output.observe("stdout", Buffer.from("one\ntw"));
  output.observe("stderr", Buffer.from("err\n"));
  output.observe("stdout", Buffer.from("o\n\nthree"));
  output.flush();
  expect(lines(journal)).toEqual(["one", "err", "two", "three"]);
  expect(journal.read(0, 1).entries[0]?.fields).toEqual({ pid: 7, stream: "stdout" });
});

test("a line of the journal is cut at 4 KiB, and a terminal is not logged", () => {
  const journal = new Journal(() => 0);
  const output = outputJournal(journal, 7);
  output.observe("stdout", Buffer.from(`${"x".repeat(10_000)}\n`));
  output.observe("pty", Buffer.from("prompt\n"));
  output.flush();
  expect(lines(journal).map(({ length }) => length)).toEqual([4_096]);
});

test("beyond its budget output is counted instead of logged", () => {
  const journal = new Journal(() => 0);
  const output = outputJournal(journal, 7);
  for (let i = 0; i < 200; i += 1) output.observe("stdout", Buffer.from(`${"x".repeat(1_023)}\n`));
  output.flush();
  expect(journal.read(0, 10_000).entries.at(-1)).toMatchObject({
    message: "output not logged",
    fields: { bytes: 136 * 1_024 },
  });
});
