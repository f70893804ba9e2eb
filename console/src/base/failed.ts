/** A refusal of the platform with all that it said, or no answer at all. Pure. */

/** `status` 0: nothing has answered. */
export class Failed extends Error {
  readonly status: number;
  readonly code: string | undefined;
  readonly requestId: string | undefined;

  constructor(
    message: string,
    facts: { readonly status: number; readonly code?: string; readonly requestId?: string },
  ) {
    super(message);
    this.status = facts.status;
    this.code = facts.code;
    this.requestId = facts.requestId;
  }
}
