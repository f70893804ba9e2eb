/** Token buckets: calls per second, with a burst. Kept in the memory of this process. */

import { LRUCache } from "lru-cache";
import { AppError } from "../../shared/http/errors.ts";
import { atMost } from "../../shared/program/at-most.ts";

export interface Rate {
  /** Tokens added per second. */
  readonly perSecond: number;
  /** Most tokens a bucket holds. */
  readonly burst: number;
}

interface Standing {
  readonly limit: number;
  readonly remaining: number;
  /** Whole seconds until the bucket is full again. */
  readonly resetSeconds: number;
}

export interface RateLimiter {
  /** Takes one token for `who`. @throws {AppError} rate_limited with `Retry-After` when there is none. */
  take(who: string, rate: Rate): Standing;
}

interface Bucket {
  tokens: number;
  at: number;
}

/** Most callers remembered. The map drops the least recently used bucket, which is nearly always a full one. */
const REMEMBERED = 20_000;

export function createRateLimiter(now: () => number): RateLimiter {
  const buckets = new LRUCache<string, Bucket>(atMost(REMEMBERED));

  return {
    take(who, rate) {
      const at = now();
      const bucket = buckets.get(who) ?? { tokens: rate.burst, at };
      const elapsed = Math.max(0, at - bucket.at) / 1000;
      bucket.tokens = Math.min(rate.burst, bucket.tokens + elapsed * rate.perSecond);
      bucket.at = at;
      buckets.set(who, bucket);
      if (bucket.tokens < 1) {
        const wait = Math.max(1, Math.ceil((1 - bucket.tokens) / rate.perSecond));
        throw new AppError("rate_limited", "Rate limit exceeded", { retryAfterSeconds: wait });
      }
      bucket.tokens -= 1;
      return {
        limit: rate.burst,
        remaining: Math.floor(bucket.tokens),
        resetSeconds: Math.ceil((rate.burst - bucket.tokens) / rate.perSecond),
      };
    },
  };
}
