/** An answer that is an error: text, or for a malformed body JSON, as clients of the interpreter expect. */

export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  get contentType(): string {
    return this.status === 422 ? "application/json" : "text/plain; charset=utf-8";
  }

  get body(): string {
    return this.status === 422 ? JSON.stringify({ detail: this.message }) : this.message;
  }
}
