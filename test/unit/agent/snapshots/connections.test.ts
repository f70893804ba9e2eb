import { expect, test } from "vitest";
import { type Connection, STATE, surviving } from "../../../../agent/snapshots/connections/decide.ts";
import { queuesOf, socketsOf, withClosed, withoutClosing } from "../../../../agent/snapshots/connections/image.ts";
import { bytesField, fieldsOf, numberField } from "../../../../agent/snapshots/criu/protobuf.ts";

const OWN = "10.213.0.7";
const isOwn = (address: string) => address.startsWith("10.213.0.");

const at = (text: string) => {
  const [address = "", port = ""] = text.split(" ");
  return { address, port: Number(port) };
};
const one = (inode: number, from: string, to: string, more: Partial<Connection> = {}): Connection => ({
  inode,
  namespace: 10,
  state: STATE.established,
  from: at(from),
  to: at(to),
  queues: { expected: 100, sendEnd: 100, sendLength: 0 },
  ...more,
});
const pair = (first: Partial<Connection> = {}, second: Partial<Connection> = {}) => [
  one(1, "127.0.0.1 5432", "127.0.0.1 40000", first),
  one(2, "127.0.0.1 40000", "127.0.0.1 5432", second),
];
const queues = (expected: number, sendEnd: number, sendLength: number) => ({
  queues: { expected, sendEnd, sendLength },
});

test.each<[string, Connection[], number[]]>([
  ["both ends of a connection on the loopback address survive", pair(), [1, 2]],
  ["both ends on the own address survive", [one(1, `${OWN} 1`, `${OWN} 2`), one(2, `${OWN} 2`, `${OWN} 1`)], [1, 2]],
  ["both ends on ::1 survive", [one(1, "::1 1", "::1 2"), one(2, "::1 2", "::1 1")], [1, 2]],
  ["a connection to the outside ends", [one(1, `${OWN} 40000`, "203.0.113.1 443")], []],
  ["a connection from the node's proxy ends", [one(1, `${OWN} 80`, "10.214.0.1 40000")], []],
  [
    "an end that claims an outside address is not the other end",
    [one(1, `${OWN} 1`, "203.0.113.1 2"), one(2, "203.0.113.1 2", `${OWN} 1`)],
    [],
  ],
  ["a connection that nobody has accepted ends", pair().slice(0, 1), []],
  [
    "a connection whose peer has ended its stream survives without it",
    pair({ state: STATE.closeWait }).slice(0, 1),
    [1],
  ],
  ["ends in different network namespaces are not of one connection", pair({}, { namespace: 11 }), []],
  ["a connection that is being made ends", pair({ state: STATE.synSent }), []],
  ["a connection whose queues were not dumped ends", pair({ queues: undefined }), []],
  ["unacknowledged and unsent bytes stay in the sender's queue", pair(queues(5, 260, 200), queues(90, 5, 0)), [1, 2]],
  ["bytes that are in no queue end both ends", pair(queues(5, 260, 100), queues(90, 5, 0)), []],
  ["bytes that the receiver has and the sender never sent end both ends", pair(queues(5, 80, 0), queues(90, 5, 0)), []],
  ["numbers that wrap around fit", pair(queues(5, 10, 30), queues(2 ** 32 - 20, 5, 0)), [1, 2]],
  [
    "the end of a stream counts as one byte",
    pair({ state: STATE.finWait1, ...queues(5, 101, 0) }, queues(100, 5, 0)),
    [1, 2],
  ],
])("%s", (_name, connections, inodes) => {
  expect([...surviving(connections, isOwn)]).toEqual(inodes);
});

const words = (...bytes: number[]) => Buffer.from(bytes).readUInt32LE();
const message = (...fields: Buffer[]) => {
  const body = Buffer.concat(fields);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(body.length);
  return Buffer.concat([length, body]);
};
const socket = (inode: number, { toPort = 5432, state = 1, family = 2 } = {}) => {
  const addresses =
    family === 2
      ? [numberField(11, words(127, 0, 0, 1)), numberField(12, words(127, 0, 0, 1))]
      : [11, 12].flatMap((number) => [0, 0, 0xffff0000, words(127, 0, 0, 1)].map((word) => numberField(number, word)));
  const numbers: [number, number][] = [
    [1, 7],
    [2, inode],
    [3, family],
    [4, 1],
    [5, 6],
    [6, state],
    [7, 40_000],
    [8, toPort],
  ];
  const fields = [...numbers.map(([number, value]) => numberField(number, value)), ...addresses, numberField(18, 10)];
  return message(numberField(1, 4), numberField(2, 7), bytesField(4, Buffer.concat(fields)));
};
const files = (...messages: Buffer[]) => Buffer.concat([Buffer.from("magicnum"), ...messages]);
const regular = message(numberField(1, 1), numberField(2, 9), bytesField(3, Buffer.from("any")));

test("sockets are read from an image, a mapped address as the one of IPv4 that it stands for", () => {
  const image = files(
    regular,
    socket(0xe2f624),
    socket(5, { family: 10 }),
    socket(6, { toPort: 0, state: STATE.listen }),
  );
  const end = { address: "127.0.0.1", port: 40_000 };
  const connected = { namespace: 10, state: STATE.established, from: end, to: { ...end, port: 5432 } };
  expect(socketsOf(image)).toEqual([
    { inode: 0xe2f624, namespace: 10, bound: "127.0.0.1", connected: { ...connected, inode: 0xe2f624 } },
    { inode: 5, namespace: 10, bound: "127.0.0.1", connected: { ...connected, inode: 5 } },
    { inode: 6, namespace: 10, bound: "127.0.0.1", connected: undefined },
  ]);
});

test("a closed socket is shut down and has no peer and no address, and everything else stays byte for byte", () => {
  const image = files(regular, socket(1), socket(2), socket(3, { toPort: 0, state: STATE.listen }));
  expect(withClosed(image, new Set())).toEqual(image);
  const closed = withClosed(image, new Set([2, 3]));
  const [first, second, third] = [socket(1), socket(2), socket(3, { toPort: 0, state: STATE.listen })];
  expect(closed.subarray(0, 8 + regular.length + first.length)).toEqual(files(regular, first));
  expect(closed.subarray(-third.length)).toEqual(third);
  const changed = closed.subarray(8 + regular.length + first.length, -third.length);
  const inet = fieldsOf(fieldsOf(changed.subarray(4)).find(({ number }) => number === 4)?.content ?? second);
  const value = (wanted: number) => inet.find(({ number }) => number === wanted)?.value;
  expect([2, 6, 7, 8, 18, 19].map(value)).toEqual([2, STATE.close, 0, 0, 10, 3]);
});

test("the inventory asks the restore for no closing, and for a lock only where connections survive", () => {
  const head = Buffer.from("magi");
  const run = bytesField(13, Buffer.from("5b1fb4b0-7b47"));
  const inventory = Buffer.concat([head, message(numberField(1, 2), numberField(10, 1), numberField(11, 1), run)]);
  const fields = (image: Buffer) =>
    fieldsOf(image.subarray(8)).map(({ number, value, content }) => [number, value || content.toString()]);
  expect(fields(withoutClosing(inventory, undefined))).toEqual([
    [1, 2],
    [11, 2],
  ]);
  expect(fields(withoutClosing(inventory, "svc"))).toEqual([
    [1, 2],
    [11, 1],
    [13, "svc"],
  ]);
});

test("the queues of a connection are read from its image", () => {
  const fields = [1, 2, 3, 4].map((number) => numberField(number, 2 ** 32 - number));
  const image = Buffer.concat([Buffer.from("magicnum"), message(...fields), Buffer.from("content of the queues")]);
  expect(queuesOf(image)).toEqual({ expected: 2 ** 32 - 2, sendLength: 2 ** 32 - 3, sendEnd: 2 ** 32 - 4 });
});

test.each<[string, Buffer]>([
  ["a length", files(regular).subarray(0, 10)],
  ["a message", files(regular).subarray(0, -1)],
  ["a field", files(message(bytesField(4, Buffer.from("abc")).subarray(0, -1)))],
  ["a number", files(message(Buffer.from([0x80])))],
])("an image that is cut off in %s is refused", (_name, image) => {
  expect(() => socketsOf(image)).toThrow(/cut off|premature EOF/);
});
