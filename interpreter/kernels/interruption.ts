/**
 * An interrupt that reaches the run and nothing else: before the run has begun, a kernel would ignore it, or a terminal
 * would throw away the command itself.
 */
export class Interruption {
  readonly #send: () => void;
  #state: "idle" | "sent" | "begun" = "idle";
  #wanted = false;

  /** @param send interrupts what the kernel runs */
  constructor(send: () => void) {
    this.#send = send;
  }

  /** A run was sent to the kernel. */
  sent(): void {
    this.#state = "sent";
    this.#wanted = false;
  }

  /** The kernel began with it. */
  begun(): void {
    if (this.#state !== "sent") return;
    this.#state = "begun";
    if (this.#wanted) this.#send();
  }

  over(): void {
    this.#state = "idle";
  }

  interrupt(): void {
    if (this.#state === "begun") this.#send();
    else this.#wanted = this.#state === "sent";
  }
}
