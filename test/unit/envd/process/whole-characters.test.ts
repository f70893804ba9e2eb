import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { WholeCharacters } from "../../../../envd/process/whole-characters.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The frames of a stream, as hexadecimal bytes. */
function setup(largest = 1024) {
  const frames: string[] = [];
  return { frames, characters: new WholeCharacters(largest, (frame) => frames.push(frame.toString("hex"))) };
}

const hex = (text: string) => Buffer.from(text, "hex");

describe("the frames of a stream", () => {
  test.each([
    ["two bytes", "61c3", "a962", ["61", "c3a962"]],
    ["three bytes, of which one has arrived", "61e4", "b8ad62", ["61", "e4b8ad62"]],
    ["three bytes, of which two have arrived", "61e4b8", "ad62", ["61", "e4b8ad62"]],
    ["four bytes, of which three have arrived", "61f09f9a", "8062", ["61", "f09f9a8062"]],
    ["four bytes, and nothing before it", "f09f9a", "80", ["f09f9a80"]],
  ])("do not cut a character of %s", (_name, first, second, expected) => {
    const { frames, characters } = setup();
    characters.push(hex(first));
    characters.push(hex(second));
    expect(frames).toEqual(expected);
  });

  test.each([
    ["letters", "616263"],
    ["whole characters", "c3a9e4b8adf09f9a80"],
    ["bytes that continue nothing", "808182"],
    ["bytes that begin no character", "61c0c1f5ff"],
    ["more continuations than a character has", "e4b8adadad"],
  ])("of %s are delivered at once", (_name, bytes) => {
    const { frames, characters } = setup();
    characters.push(hex(bytes));
    expect(frames).toEqual([bytes]);
  });

  test("are as large as they may be, and end before a character that does not fit", () => {
    const { frames, characters } = setup(8);
    characters.push(Buffer.from("中中中中中a"));
    expect(frames).toEqual(["e4b8ade4b8ad", "e4b8ade4b8ad", "e4b8ad61"]);
  });

  test("have every byte in order, whatever the bytes and pieces are", () => {
    const bytes = Buffer.from(Array.from({ length: 5_000 }, (_, index) => (index * index * 31 + (index >> 3)) % 256));
    const { frames, characters } = setup(64);
    for (let from = 0; from < bytes.length; from += 97) characters.push(bytes.subarray(from, from + 97));
    characters.flush();
    expect(frames.join("")).toBe(bytes.toString("hex"));
    expect(Math.max(...frames.map(({ length }) => length / 2))).toBeLessThanOrEqual(64);
  });
});

describe("the beginning of a character", () => {
  test("is delivered when its rest does not come", () => {
    const { frames, characters } = setup();
    characters.push(hex("61e4b8"));
    vi.advanceTimersByTime(49);
    expect(frames).toEqual(["61"]);
    vi.advanceTimersByTime(1);
    expect(frames).toEqual(["61", "e4b8"]);
  });

  test("is delivered at the end, once", () => {
    const { frames, characters } = setup();
    characters.push(hex("e4"));
    characters.flush();
    characters.flush();
    vi.advanceTimersByTime(1_000);
    expect(frames).toEqual(["e4"]);
  });

  test("waits while nobody reads, also when its own frame has stopped the reading", () => {
    const frames: string[] = [];
    const characters = new WholeCharacters(1024, (frame) => {
      frames.push(frame.toString("hex"));
      characters.pause();
    });
    characters.push(hex("61e4b8"));
    vi.advanceTimersByTime(60_000);
    characters.resume();
    characters.push(hex("ad"));
    expect(frames).toEqual(["61", "e4b8ad"]);
  });

  test("waits no longer than usual once reading goes on", () => {
    const { frames, characters } = setup();
    characters.pause();
    characters.push(hex("e4"));
    vi.advanceTimersByTime(1_000);
    characters.resume();
    vi.advanceTimersByTime(50);
    expect(frames).toEqual(["e4"]);
  });
});
