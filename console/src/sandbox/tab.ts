/** What every tab of a sandbox gets. */

import type { SandboxDetail } from "../../../shared/api/sandboxes/sandbox-shapes.ts";

export interface TabProps {
  readonly sandbox: SandboxDetail;
  /** Reads the sandbox again. */
  readonly again: () => void;
}
