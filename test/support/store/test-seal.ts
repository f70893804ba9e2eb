/** A key for databases of tests. */

import { createSeal } from "../../../shared/program/sealing/seal.ts";

export const testSeal = createSeal("a key of the tests", "the tests");
