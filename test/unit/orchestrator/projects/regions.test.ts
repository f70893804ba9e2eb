/** The operator's list of regions, and the region that a project names. */

import { expect, test } from "vitest";
import { parseRegions, readRegion } from "../../../../orchestrator/projects/regions.ts";

test("regions are the operator's list, and a project's is one of them in any case", () => {
  const regions = parseRegions(" US, eu-west ,,APAC");
  expect(regions).toEqual(["US", "eu-west", "APAC"]);
  expect(readRegion("EU-West", regions)).toBe("eu-west");
  expect(readRegion(undefined, regions)).toBeUndefined();
  expect(() => readRegion("moon", regions)).toThrow(
    "'moon' is not a region of the platform (SVC_REGIONS: US, eu-west, APAC)",
  );
  expect(() => readRegion("US", parseRegions(""))).toThrow("the platform has none");
});
