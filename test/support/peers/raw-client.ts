/** The one raw client of tests: it sends bytes and keeps what comes back. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** A client that sends exactly the bytes of the test. */
export class RawClient {
  readonly socket: Socket;
  received = "";
  ended = false;
  closed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => (this.received += text));
    socket.on("end", () => (this.ended = true));
    socket.on("close", () => (this.closed = true));
    socket.on("error", () => undefined);
  }

  static async open(port: number, allowHalfOpen = false): Promise<RawClient> {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen });
    await once(socket, "connect");
    return new RawClient(socket);
  }

  send(text: string): this {
    this.socket.write(text, "latin1");
    return this;
  }

  /** Resolves to the received text once it satisfies `enough`, or once the connection has ended. */
  async until(enough: (received: string) => boolean): Promise<string> {
    while (!enough(this.received) && !this.closed && !this.ended) {
      await new Promise<void>((resolve) => {
        const done = () => {
          for (const event of ["data", "end", "close"]) this.socket.removeListener(event, done);
          resolve();
        };
        for (const event of ["data", "end", "close"]) this.socket.on(event, done);
      });
    }
    return this.received;
  }

  toEnd(): Promise<string> {
    return this.until(() => false);
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** Sends one request on a connection of its own and resolves to the answer. */
export async function ask(port: number, text: string): Promise<string> {
  const client = await RawClient.open(port);
  const answer = await client.send(text).toEnd();
  client.destroy();
  return answer;
}
