/** Where a list of lines stands that grows while somebody reads it. */

import { expect, test } from "vitest";
import { endFollower } from "../../../../console/src/parts/end-follower.ts";

/** As a browser has it: nobody scrolls beyond the end. */
function listOf(clientHeight: number) {
  let top = 0;
  const follower = endFollower();
  const list = {
    scrollHeight: 0,
    clientHeight,
    get scrollTop() {
      return top;
    },
    set scrollTop(to: number) {
      top = Math.max(0, Math.min(to, list.scrollHeight - clientHeight));
    },
  };
  const scroll = (to: number) => {
    list.scrollTop = to;
    follower.scrolled(list);
  };
  const grow = (by: number) => {
    list.scrollHeight += by;
    follower.grown(list);
  };
  const told = () => follower.scrolled(list);
  return { list, scroll, grow, told };
}

test("a thousand lines at once are shown from their end, and so are those that come then", () => {
  const { list, grow } = listOf(500);
  grow(20_000);
  expect(list.scrollTop).toBe(19_500);
  grow(3_000);
  expect(list.scrollTop).toBe(22_500);
});

test("whoever has scrolled up stays there, and follows again from the end on", () => {
  const { list, grow, scroll } = listOf(500);
  grow(20_000);
  scroll(12_000);
  grow(3_000);
  expect(list.scrollTop).toBe(12_000);
  scroll(22_480);
  grow(1_000);
  expect(list.scrollTop).toBe(23_500);
});

test("a browser that tells of the page's own scrolling after more lines have come does not end it", () => {
  const { list, grow, told } = listOf(500);
  grow(20_000);
  list.scrollHeight += 3_000;
  told();
  grow(0);
  expect(list.scrollTop).toBe(22_500);
});
