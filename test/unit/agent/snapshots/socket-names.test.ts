import { expect, test } from "vitest";
import { withSocketNames } from "../../../../agent/snapshots/connections/image.ts";
import { bytesField, fieldsOf, numberField } from "../../../../agent/snapshots/criu/protobuf.ts";
import { socketNames } from "../../../../agent/snapshots/take/socket-names.ts";

const HEAD = Buffer.from("magic no");
const message = (body: Buffer) => {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(body.length);
  return Buffer.concat([length, body]);
};
/** A Unix socket as CRIU writes it: inode, type, name, directory, whether its file is deleted, mount. */
const socket = (inode: number, name: string, more: readonly Buffer[] = []) =>
  message(
    Buffer.concat([
      numberField(1, 5),
      bytesField(
        16,
        Buffer.concat([numberField(2, inode), numberField(3, 1), bytesField(11, Buffer.from(name)), ...more]),
      ),
    ]),
  );
const DELETED = numberField(15, 1);
const MOUNT = numberField(17, 600);
/** Number, value and text of the fields of the image's sockets. */
const read = (image: Buffer) => {
  const found: unknown[][] = [];
  for (let at = HEAD.length; at < image.length; at += 4 + image.readUInt32LE(at)) {
    const fields = fieldsOf(image.subarray(at + 4, at + 4 + image.readUInt32LE(at)));
    const unix = fields.find(({ number }) => number === 16);
    found.push(
      fieldsOf(unix?.content ?? Buffer.alloc(0)).map(({ number, value, content }) => [
        number,
        content.length > 0 ? content.toString("latin1") : value,
      ]),
    );
  }
  return found;
};

test("a renamed socket gets the name of its file in the image, and others stay as they are", () => {
  const names = socketNames(Buffer.from("7\0\0/run/socket\x008\0/srv/long\0caf\xe9\0", "latin1"));
  const kept = socket(9, "/run/other\0", [MOUNT]);
  const changed = withSocketNames(
    Buffer.concat([
      HEAD,
      socket(7, "/run/socket.30.tmp\0", [DELETED, MOUNT]),
      socket(8, "socket.tmp\0", [bytesField(14, Buffer.from("/srv/before"))]),
      kept,
    ]),
    names,
  );
  expect(changed.subarray(0, HEAD.length)).toEqual(HEAD);
  expect(changed.subarray(-kept.length)).toEqual(kept);
  expect(read(changed).slice(0, 2)).toEqual([
    [
      [2, 7],
      [3, 1],
      [17, 600],
      [11, "/run/socket\0"],
    ],
    [
      [2, 8],
      [3, 1],
      [11, "caf\xe9\0"],
      [14, "/srv/long"],
    ],
  ]);
});

test("an empty list of renamed sockets names none, and one that is cut off is refused", () => {
  expect(socketNames(Buffer.alloc(0)).size).toBe(0);
  for (const text of ["7\0\0/run/sock", "7\0\0", "7\0"])
    expect(() => socketNames(Buffer.from(text))).toThrow("cut off");
});
