import { expect, test } from "vitest";
import { loadFailure } from "../../../../../agent/containers/images/load-failure.ts";

const LONG = "n".repeat(300);
const unpacking = (what: string) => `Error processing tar file(exit status 1): ${what}`;

// The texts come from Docker 20 to 29.
test.each([
  [
    'parsing time "\\"yesterday\\"" as "\\"2006-01-02T15:04:05Z07:00\\"": cannot parse "yesterday\\"" as "2006"',
    "its configuration has a time that is not in RFC 3339 format",
  ],
  [
    "json: cannot unmarshal string into Go struct field Config.config.Env of type []string",
    "its configuration has a field of another type than OCI images have",
  ],
  [
    `invalid diffID for layer 0: expected "sha256:${"0".repeat(64)}", got "sha256:${"1".repeat(64)}"`,
    "its configuration does not name its layers",
  ],
  ["invalid manifest, layers length mismatch: expected 1, got 0", "its configuration does not name its layers"],
  ["cannot load windows image on linux", "it is for another operating system or processor"],
  [unpacking("archive/tar: invalid tar header"), "a layer is damaged, or has entries of a kind that no image has"],
  [unpacking("unhandled tar header type 90"), "a layer is damaged, or has entries of a kind that no image has"],
  [unpacking("unexpected EOF"), "a layer is damaged, or has entries of a kind that no image has"],
  [
    unpacking("link /nowhere /l: no such file or directory"),
    "a layer has a hard link to a file that is not in the image ('/l')",
  ],
  [
    unpacking("open /a/b: not a directory"),
    "a layer has a file where the same path is a directory, or the other way round ('/a/b')",
  ],
  [
    unpacking('failed to mknod("/", S_IFCHR, 0): file exists'),
    "a layer has a file where the same path is a directory, or the other way round",
  ],
  [
    unpacking(`open /${LONG}: file name too long`),
    `a layer has an entry whose name is longer than 255 bytes ('/${"n".repeat(99)}...')`,
  ],
  [unpacking("invalid argument"), "a layer has an entry that cannot be made: an attribute, a device or a path"],
  [unpacking("write /big: no space left on device"), "the node's disk is full"],
  ["write /var/lib/docker/tmp/docker-import-1/x: no space left on device", "the node's disk is full"],
  ["Get http://10.0.0.2/x: something that has never been seen", "Docker refused it"],
])("%s: the person who builds reads what is wrong with the archive and a way out", (said, reason) => {
  const message = loadFailure(said);
  expect(message.startsWith(`the uploaded image cannot be loaded: ${reason}; `)).toBe(true);
  expect(message).not.toMatch(/Error processing|exit status|unmarshal|10\.0\.0|\/var\/lib|archive\/tar|Go struct/);
});

test("the name of an entry is quoted and shortened, so that it does not read like the platform's own text", () => {
  const message = loadFailure(unpacking(`open /a'; all is well\u001b[31m\u202e${LONG}: not a directory`));
  expect(message).toContain("('/a?; all is well?[31m?nnn");
  expect(message).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(message.length).toBeLessThan(350);
});
