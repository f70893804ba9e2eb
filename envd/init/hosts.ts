/**
 * /etc/hosts over a memory dump. Docker makes the file anew whenever a container starts, so a restored sandbox would lose the
 * names that its programs wrote there, while these go on. Other files of Docker's (resolv.conf, hostname) are the node's.
 */

import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { posix } from "node:path";

const FILE = "etc/hosts";
/** A program inside can write any file there. A larger one is left as it is. */
const MOST_BYTES = 64 * 1024;

export class Hosts {
  readonly #path: string;
  /** As Docker makes it. */
  #fresh: Buffer | undefined;
  #kept: Buffer | undefined;

  /** @param root `/` outside of tests */
  constructor(root: string) {
    this.#path = posix.join(root, FILE);
  }

  /** Called before memory is stored. */
  keep(): void {
    this.#kept = this.#read();
  }

  /**
   * Called when the sandbox may have been restored: writes what was kept, in place, where the file is as Docker makes it. What
   * a program has written since stays. @throws ErrnoException when it cannot be written
   */
  restore(): void {
    const now = this.#read();
    this.#fresh ??= now;
    const kept = this.#kept;
    this.#kept = undefined;
    if (now === undefined || kept === undefined || now.equals(kept) || this.#fresh?.equals(now) !== true) return;
    const file = openSync(this.#path, constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      const size = writeSync(file, kept, 0, kept.length, 0);
      if (fstatSync(file).size > size) ftruncateSync(file, size);
    } finally {
      closeSync(file);
    }
  }

  /** Nothing where there is no file of a usual size. */
  #read(): Buffer | undefined {
    try {
      const found = statSync(this.#path, { throwIfNoEntry: false });
      return found?.isFile() === true && found.size <= MOST_BYTES ? readFileSync(this.#path) : undefined;
    } catch {
      return undefined;
    }
  }
}
