/** A change of network options under way, as it is sealed beside the options. */

import type { Seal } from "../../shared/program/seal.ts";
import { networkChangeContext as context } from "../store/sealed/contexts.ts";
import type { NetworkWish } from "./policy.ts";

/** Without `wish`, the node gets the options of the record. */
export interface Change {
  readonly executionId: string;
  readonly wish?: NetworkWish;
}

export function sealChange(sealing: Seal, id: string, change: Change): string {
  return sealing.close(JSON.stringify(change), context(id));
}

export function openChange(sealing: Seal, id: string, sealed: string): Change {
  return JSON.parse(sealing.open(sealed, context(id))) as Change;
}
