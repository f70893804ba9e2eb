/** A change of network options under way, as it is sealed beside the options. */

import { defined } from "../../shared/defined.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import { networkChangeContext as context } from "../store/sealed/contexts.ts";
import type { DesiredNetwork } from "./policy.ts";

/** Without `desired`, the node gets the options of the record. */
export interface Change {
  readonly executionId: string;
  readonly desired?: DesiredNetwork;
}

/** As it is sealed: changes under way from before the field had its present name must open too. */
interface StoredChange {
  readonly executionId: string;
  readonly wish?: DesiredNetwork;
}

export function sealChange(sealing: Seal, id: string, { executionId, desired }: Change): string {
  const stored: StoredChange = { executionId, ...defined({ wish: desired }) };
  return sealing.close(JSON.stringify(stored), context(id));
}

export function openChange(sealing: Seal, id: string, sealed: string): Change {
  const { executionId, wish } = JSON.parse(sealing.open(sealed, context(id))) as StoredChange;
  return { executionId, ...defined({ desired: wish }) };
}
