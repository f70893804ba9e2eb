/** A key for databases of tests. */

import { createSeal } from "../../shared/seal.ts";

export const testSeal = createSeal("a key of the tests", "the tests");
