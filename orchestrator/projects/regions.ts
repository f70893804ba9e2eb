/** Regions: labels that the operator names, of nodes and of projects. Pure. */

import { AppError } from "../../shared/http/errors.ts";

/** `US,EU,APAC`; empty: the platform has no regions. */
export function parseRegions(setting: string): readonly string[] {
  return setting
    .split(",")
    .map((region) => region.trim())
    .filter((region) => region !== "");
}

/** The region in the operator's spelling. @throws {AppError} bad_request that lists the regions */
export function readRegion(asked: string | undefined, regions: readonly string[]): string | undefined {
  if (asked === undefined) return undefined;
  const found = regions.find((region) => region.toLowerCase() === asked.trim().toLowerCase());
  if (found !== undefined) return found;
  const known = regions.length === 0 ? "the platform has none" : regions.join(", ");
  throw new AppError(
    "bad_request",
    `body field 'region': '${asked}' is not a region of the platform (SVC_REGIONS: ${known})`,
  );
}
