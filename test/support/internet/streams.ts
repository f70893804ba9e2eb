/** The servers without HTTP: one that speaks first, one about half-closed connections, bulk, and UDP. */

import { createSocket } from "node:dgram";
import { createServer, type Socket } from "node:net";
import type { Names } from "./names.ts";
import { ADDRESS, PORT } from "./plan.ts";
import type { Records } from "./records.ts";

export async function serveStreams(records: Records): Promise<void> {
  await listen(PORT.ssh, records, (socket) => {
    socket.write("SSH-2.0-TestInternet_1.0\r\n");
    socket.on("data", (chunk) => socket.write(`Permission denied (publickey). You said ${chunk.length} bytes\r\n`));
    socket.on("end", () => socket.end());
  });
  await listen(PORT.halfClose, records, (socket) => halfClosed(socket, records));
  await listen(PORT.bulk, records, bulk);
}

/** `after-fin`: answers once the client has ended its side. `first-fin`: ends its own side at once, and reads on. */
function halfClosed(socket: Socket, records: Records): void {
  let first: string | undefined;
  let received = 0;
  socket.on("data", (chunk) => {
    if (first === undefined) {
      first = chunk.toString("latin1").split("\n", 1)[0] ?? "";
      received += chunk.length - first.length - 1;
      if (first === "first-fin") socket.end("bye\n");
    } else received += chunk.length;
  });
  socket.on("end", () => {
    if (first === "first-fin") {
      records.add({
        is: "half-closed",
        address: socket.localAddress ?? "",
        port: PORT.halfClose,
        receivedAfter: received,
      });
    } else socket.end(`received ${received}\n`);
  });
}

/** The first line is the order: `echo` sends back what follows, `sink` counts what follows, `source N` sends N bytes. */
function bulk(socket: Socket): void {
  socket.once("data", (chunk) => {
    const end = chunk.indexOf(10);
    const [verb, count] = chunk.subarray(0, end).toString("latin1").split(" ");
    const rest = chunk.subarray(end + 1);
    if (verb === "echo") {
      if (rest.length > 0) socket.write(rest);
      socket.pipe(socket);
    } else if (verb === "source") {
      source(socket, Number(count));
    } else {
      let received = rest.length;
      socket.on("data", (more) => {
        received += more.length;
      });
      socket.on("end", () => socket.end(`received ${received}\n`));
    }
  });
}

function source(socket: Socket, length: number): void {
  const block = Buffer.alloc(1 << 16);
  let left = length;
  const fill = () => {
    while (left > 0) {
      const piece = left < block.length ? block.subarray(0, left) : block;
      left -= piece.length;
      if (!socket.write(piece)) return;
    }
    socket.end();
  };
  socket.on("drain", fill);
  fill();
}

async function listen(port: number, records: Records, serve: (socket: Socket) => void): Promise<void> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    records.add({ is: "connection", service: String(port), address: socket.localAddress ?? "", port });
    socket.on("error", () => socket.destroy());
    serve(socket);
  });
  await new Promise<void>((resolve) => {
    server.listen(port, "0.0.0.0", 4096, resolve);
  });
}

/** Opens one socket for each address: a reply must come from the address to which the question went. */
export async function serveDatagrams(names: Names, records: Records): Promise<void> {
  const { eight, eightFour, nine, one, oneTwo } = ADDRESS;
  for (const address of [eight, eightFour, nine, one, oneTwo]) {
    for (const port of [PORT.udpEcho, 443, PORT.udpNames]) {
      const socket = createSocket("udp4");
      socket.on("message", (data, from) => {
        records.add({ is: "datagram", address, port, text: data.toString("latin1").slice(0, 200) });
        const reply = port === PORT.udpNames ? names.answer(data, `${address}:${port}`) : data;
        if (reply !== undefined) socket.send(reply, from.port, from.address);
      });
      await new Promise<void>((resolve) => {
        socket.bind(port, address, resolve);
      });
    }
  }
}
