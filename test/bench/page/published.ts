/** Figures that others have published about hosted services, as they were published. */

export interface Published {
  readonly service: string;
  /** Median milliseconds from the create call to the first command's answer. */
  readonly sequential: number;
  readonly staggered: number;
  readonly burst: number;
}

/** ComputeSDK's benchmarks, results of 2026-05-05: a hundred of each, from GitHub Actions over the internet. */
export const SOURCE = {
  name: "ComputeSDK Benchmarks",
  day: "5 May 2026",
  url: "https://github.com/computesdk/benchmarks/tree/master/results",
  method: "https://github.com/computesdk/benchmarks/blob/master/METHODOLOGY.md",
};

export const PUBLISHED: readonly Published[] = [
  { service: "Daytona", sequential: 186, staggered: 210, burst: 367 },
  { service: "E2B", sequential: 491, staggered: 454, burst: 822 },
  { service: "Blaxel", sequential: 525, staggered: 539, burst: 1_610 },
  { service: "Vercel", sequential: 671, staggered: 641, burst: 832 },
  { service: "Runloop", sequential: 1_688, staggered: 1_859, burst: 6_662 },
  { service: "Modal", sequential: 1_723, staggered: 1_711, burst: 2_261 },
  { service: "Cloudflare", sequential: 2_056, staggered: 2_131, burst: 2_092 },
  { service: "CodeSandbox", sequential: 2_486, staggered: 2_546, burst: 6_658 },
];
