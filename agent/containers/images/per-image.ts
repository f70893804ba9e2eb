/** Answers of the Docker daemon that do not change: asked for once, unless the question fails. */

import { LRUCache } from "lru-cache";

/** Each snapshot has an image of its own, so there is no end of them. */
const MOST_IMAGES = 1_000;

/** The answer, and after a failure the next one. */
export function once<T>(read: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  return () => {
    answer ??= read().catch((error: unknown) => {
      answer = undefined;
      throw error;
    });
    return answer;
  };
}

/** As `once`, for each image; the images that were used least lately are forgotten. */
export function perImage<T>(read: (image: string) => Promise<T>): (image: string) => Promise<T> {
  const known = new LRUCache<string, () => Promise<T>>({ max: MOST_IMAGES });
  return (image) => {
    const answer = known.get(image) ?? once(() => read(image));
    known.set(image, answer);
    return answer();
  };
}
