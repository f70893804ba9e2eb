/** ClientHellos as they are on the wire, right and wrong ones, as Latin-1 text with one character for each byte. */

import { Duplex } from "node:stream";
import { connect } from "node:tls";

/** Resolves to the first message of a real TLS client. */
export function clientHello(servername?: string): Promise<Buffer> {
  return new Promise((resolve) => {
    const wire = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer) => {
        resolve(Buffer.from(chunk));
        setImmediate(() => tls.destroy());
      },
    });
    const tls = connect({ socket: wire, ...(servername === undefined ? {} : { servername }) });
    tls.on("error", () => undefined);
  });
}

export async function helloText(servername?: string): Promise<string> {
  return (await clientHello(servername)).toString("latin1");
}

/** Splits the message into records of `size` bytes. */
export function inRecords(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 0xff]), part);
  }
  return Buffer.concat(records);
}

/** Makes a minimal message with the given extensions. */
export function handMade(extensions: readonly (readonly [number, Buffer])[]): Buffer {
  const list = Buffer.concat(
    extensions.map(([type, content]) => Buffer.concat([two(type), two(content.length), content])),
  );
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32),
    Buffer.from([0, 0, 2, 0x13, 1, 1, 0]),
    two(list.length),
    list,
  ]);
  const message = Buffer.concat([Buffer.from([1, 0]), two(body.length), body]);
  return Buffer.concat([Buffer.from([22, 3, 1]), two(message.length), message]);
}

/** Makes the content of a server_name extension. */
export function serverNames(...names: readonly Buffer[]): Buffer {
  const list = Buffer.concat(names.map((name) => Buffer.concat([Buffer.from([0]), two(name.length), name])));
  return Buffer.concat([two(list.length), list]);
}

function two(number: number): Buffer {
  return Buffer.from([number >> 8, number & 0xff]);
}
