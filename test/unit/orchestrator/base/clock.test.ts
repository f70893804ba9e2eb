import { expect, test } from "vitest";
import { createClock } from "../../../../orchestrator/base/clock.ts";

const HOUR_MS = 3_600_000;

/** A machine of which a test sets the clock. */
function machine() {
  const time = { wall: 1_000_000_000, elapsed: 5 };
  const clock = createClock(
    () => time.wall,
    () => time.elapsed,
  );
  const pass = (ms: number) => {
    time.wall += ms;
    time.elapsed += ms;
  };
  return { time, clock, pass };
}

test.each([HOUR_MS, -HOUR_MS])(
  "a machine's clock that is set by %i ms changes the time only when the work for that is done",
  async (by) => {
    const { time, clock, pass } = machine();
    pass(500);
    time.wall += by;
    expect(clock.now()).toBe(1_000_000_500);
    pass(100);
    const done: number[] = [];
    await expect(clock.follow(() => Promise.reject(new Error("the database is away")))).rejects.toThrow("away");
    expect(clock.now()).toBe(1_000_000_600);
    await clock.follow((ms) => {
      done.push(ms, clock.now());
      return Promise.resolve();
    });
    expect(done).toEqual([by, 1_000_000_600]);
    expect(clock.now()).toBe(1_000_000_600 + by);
    await clock.follow(() => Promise.reject(new Error("nothing was set since")));
  },
);

test("a clock that is set while the work runs is followed by the next call", async () => {
  const { time, clock } = machine();
  time.wall += HOUR_MS;
  await clock.follow(() => {
    time.wall -= 10_000;
    clock.now();
    return Promise.resolve();
  });
  expect(clock.now()).toBe(1_000_000_000 + HOUR_MS);
  const more: number[] = [];
  await clock.follow((ms) => Promise.resolve(void more.push(ms)));
  expect(more).toEqual([-10_000]);
  expect(clock.now()).toBe(time.wall);
});

test("a clock that is adjusted goes its way, however far it comes", async () => {
  const { time, clock, pass } = machine();
  for (let second = 0; second < 1_000; second++) {
    pass(1_000);
    time.wall += 100;
    expect(clock.now()).toBe(time.wall);
  }
  await clock.follow(() => Promise.reject(new Error("nothing was set")));
});

test("a process that stands still between two readings takes that for no change of the clock", async () => {
  const time = { elapsed: 0, stops: false };
  // The process stops for half a minute behind the reading of the machine's clock.
  const wall = () => {
    const at = 1_000_000_000 + time.elapsed;
    if (time.stops) time.elapsed += 30_000;
    return at;
  };
  const clock = createClock(wall, () => time.elapsed);
  time.stops = true;
  clock.now();
  time.stops = false;
  expect(clock.now()).toBe(1_000_030_000);
  await clock.follow(() => Promise.reject(new Error("nothing was set")));
});

test("the difference from the database's clock is added, and stays when the machine's clock is set", () => {
  const { time, clock } = machine();
  clock.onDifference(250);
  time.wall += HOUR_MS;
  expect(clock.now()).toBe(1_000_000_250);
});
