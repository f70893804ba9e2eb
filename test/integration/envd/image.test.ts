import { execFile } from "node:child_process";
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeAuthority } from "../../../agent/egress/rewrite/certificates.ts";
import { CA_FILE, installCertificates } from "../../../envd/init/ca-bundle.ts";
import { Users } from "../../../envd/system/users.ts";

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

  test("gets the certificate in its bundle and in two files of its own, and loses it again", async () => {
    const bundle = "etc/pki/tls/certs/ca-bundle.crt";
    await mkdir(join(root, dirname(bundle)), { recursive: true });
    await writeFile(join(root, bundle), `${OTHER}\n`);
    await installCertificates(root, OURS);
    expect(await read(bundle)).toContain("ours");
    expect(await read(CA_FILE)).toBe(`${OURS}\n`);
    expect(await read("usr/local/share/ca-certificates/svc-ca.crt")).toBe(`${OURS}\n`);
    await installCertificates(root, "");
    expect(await read(bundle)).toBe(`${OTHER}\n`);
    await expect(read(CA_FILE)).rejects.toThrow("ENOENT");
  });

  const bundle = "etc/ssl/certs/ca-certificates.crt";
  const made = async (name: string) =>
    (await makeAuthority(name, { from: Date.now(), until: Date.now() + 1e8 })).certificate;
  const certs = async () => (await readdir(join(root, "etc/ssl/certs"))).toSorted();

  test.each(["svc egress 1f", "Capital  Letters", "straße ☃", "under_score"])(
    "finds %s by its hash, as OpenSSL would",
    async (name) => {
      const pem = await made(name);
      await installCertificates(root, pem);
      const { stdout } = await promisify(execFile)("openssl", [
        "x509",
        "-in",
        join(root, CA_FILE),
        "-noout",
        "-subject_hash",
      ]);
      expect(await certs()).toEqual([`${stdout.trim()}.0`, "ca-certificates.crt", "svc-ca.pem"].toSorted());
      expect(await readlink(join(root, `etc/ssl/certs/${stdout.trim()}.0`))).toBe("svc-ca.pem");
      expect(await readlink(join(root, "etc/ssl/certs/svc-ca.pem"))).toBe(
        "/usr/local/share/ca-certificates/svc-ca.crt",
      );
      await installCertificates(root, "");
      expect(await certs()).toEqual(["ca-certificates.crt"]);
    },
  );

  test("gets several authorities, each in a file and under a hash of its own, and those that are left when one goes", async () => {
    const [node, company, second] = [await made("svc egress 1f"), await made("Company"), await made("Second")];
    await installCertificates(root, `${company}${second}${node}`);
    const anchors = async () => (await readdir(join(root, "usr/local/share/ca-certificates"))).toSorted();
    expect(await anchors()).toEqual(["svc-ca-2.crt", "svc-ca-3.crt", "svc-ca.crt"]);
    expect(await certs()).toHaveLength(7);
    expect(await read(CA_FILE)).toBe(`${company}${second}${node}`);
    await installCertificates(root, `${company}${node}`);
    expect(await anchors()).toEqual(["svc-ca-2.crt", "svc-ca.crt"]);
    expect(await read("usr/local/share/ca-certificates/svc-ca-2.crt")).toBe(node);
    expect(await certs()).toHaveLength(5);
    await promisify(execFile)("openssl", ["verify", "-CAfile", join(root, bundle), join(root, CA_FILE)]);
    expect(await read(bundle)).not.toContain(second.split("\n")[1]);
    await installCertificates(root, "");
    expect(await anchors()).toEqual([]);
    expect(await certs()).toEqual(["ca-certificates.crt"]);
  });

  test("whose bundle was rebuilt has the authority once, and not after its removal", async () => {
    await mkdir(join(root, dirname(bundle)), { recursive: true });
    await installCertificates(root, OURS);
    // update-ca-certificates leaves the bundle like this, without our marks.
    await writeFile(join(root, bundle), `${OTHER}\n${OURS}\n`);
    await installCertificates(root, OURS);
    expect((await read(bundle)).match(/ours/g)).toHaveLength(1);
    await installCertificates(root, "");
    expect(await read(bundle)).toBe(`${OTHER}\n`);
  });

  test("on another node trusts that node's authority, and no longer the first node's", async () => {
    const [first, second] = [await made("svc egress 1"), await made("svc egress 2")];
    await installCertificates(root, first);
    await installCertificates(root, second);
    expect(await read(bundle)).toBe(`# svc: begin\n${second}# svc: end\n`);
    expect(await certs()).toHaveLength(3);
  });

  test("without the platform's certificate is not touched when none is wanted", async () => {
    expect(await installCertificates(root, "")).toEqual({});
    expect(await readdir(root)).toEqual([]);
  });

  test("keeps links between its bundles, and only root can write one", async () => {
    await mkdir(join(root, "etc/ssl/certs"), { recursive: true });
    await writeFile(join(root, bundle), `${OTHER}\n`, { mode: 0o666 });
    await chmod(join(root, bundle), 0o666);
    await symlink("certs/ca-certificates.crt", join(root, "etc/ssl/cert.pem"));
    expect(await installCertificates(root, OURS)).toEqual({
      NODE_EXTRA_CA_CERTS: "/run/svc/ca.pem",
      SSL_CERT_FILE: `/${bundle}`,
      REQUESTS_CA_BUNDLE: `/${bundle}`,
    });
    expect((await lstat(join(root, "etc/ssl/cert.pem"))).isSymbolicLink()).toBe(true);
    for (const path of [bundle, CA_FILE]) expect((await stat(join(root, path))).mode & 0o022).toBe(0);
  });

  test("without any certificates trusts ours", async () => {
    await installCertificates(root, OURS);
    expect(await read("etc/ssl/certs/ca-certificates.crt")).toContain("ours");
  });
});
