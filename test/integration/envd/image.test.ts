import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CA_FILE, installCertificate } from "../../../envd/ca-bundle.ts";
import { Users } from "../../../envd/users.ts";

const OURS = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----";
const OTHER = "-----BEGIN CERTIFICATE-----\nother\n-----END CERTIFICATE-----";
const PASSWD = "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1001::/home/user:/bin/bash\n";
const GROUP = "root:x:0:\nsudo:x:27:user\n";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "image-"));
});
afterEach(() => rm(root, { recursive: true }));

describe("the live user database", () => {
  test("a user that is added later is found", async () => {
    const users = new Users(root);
    expect(users.find("user")).toBeUndefined();
    await writeFile(join(root, "passwd"), PASSWD);
    expect(users.find("user")?.uid).toBe(1000);
    await writeFile(join(root, "passwd"), `${PASSWD}late:x:77:77::/late:/bin/sh\n`);
    expect(users.get("late").home).toBe("/late");
  });

  test("an unknown name is refused by name", async () => {
    expect(() => new Users(root).get("ghost")).toThrow("invalid username: 'ghost'");
  });

  test("numbers without a name are shown as numbers", async () => {
    await writeFile(join(root, "group"), GROUP);
    const users = new Users(root);
    expect([users.userName(1000), users.groupName(27), users.groupName(5)]).toEqual(["1000", "sudo", "5"]);
  });
});

describe("an image", () => {
  const read = (path: string) => readFile(join(root, path), "utf8");

  test("with a bundle has it extended, and finds the certificate by itself elsewhere", async () => {
    const bundle = "etc/pki/tls/certs/ca-bundle.crt";
    await mkdir(join(root, dirname(bundle)), { recursive: true });
    await writeFile(join(root, bundle), `${OTHER}\n`);
    await installCertificate(root, OURS);
    expect(await read(bundle)).toContain("ours");
    expect(await read(CA_FILE)).toBe(`${OURS}\n`);
    expect(await read("usr/local/share/ca-certificates/svc-ca.crt")).toBe(`${OURS}\n`);
    await installCertificate(root, "");
    expect(await read(bundle)).toBe(`${OTHER}\n`);
    await expect(read(CA_FILE)).rejects.toThrow("ENOENT");
  });

  test("without any certificates trusts ours", async () => {
    await installCertificate(root, OURS);
    expect(await read("etc/ssl/certs/ca-certificates.crt")).toContain("ours");
  });
});
