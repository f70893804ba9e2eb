/** A program that is just being started may miss an interrupt. */
const AGAIN_MS = 1_000;

/**
 * An interrupt that reaches the run and nothing else: before the run has begun, a kernel would ignore it, or a terminal
 * would throw away the command itself.
 */
export class Interruption {
  readonly #send: () => void;
  #state: "idle" | "sent" | "begun" = "idle";
  #wanted = false;
  #again: NodeJS.Timeout | undefined;

  /** @param send interrupts what the kernel runs; called again each second until the run is over */
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
    if (this.#wanted) this.#repeat();
  }

  over(): void {
    this.#state = "idle";
    clearInterval(this.#again);
  }

  interrupt(): void {
    if (this.#state === "begun") this.#repeat();
    else this.#wanted = this.#state === "sent";
  }

  #repeat(): void {
    clearInterval(this.#again);
    this.#send();
    this.#again = setInterval(() => this.#send(), AGAIN_MS);
  }
}
