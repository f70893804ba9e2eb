/** The script turns the machine's own apt sources, in either format, into a source for another suite. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";

const library = join(import.meta.dirname, "../../../scripts/lib/apt-mirror.sh");
const directory = mkdtempSync(join(tmpdir(), "svc-apt-"));
afterAll(() => rmSync(directory, { recursive: true }));

function ask(reader: "deb822_stanza" | "one_line", text: string, own = "bookworm"): string {
  const file = join(directory, "source");
  writeFileSync(file, text);
  const script = '. "$1"; "$2" "$3" sid main "$4"';
  return execFileSync("bash", ["-c", script, "bash", library, reader, own, file], { encoding: "utf8" }).trim();
}

describe("a deb822 source", () => {
  const stanzas = `Types: deb deb-src
# a comment between fields
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/mirror.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/security.gpg
`;

  test("keeps address and keyring and changes suite and components", () => {
    expect(ask("deb822_stanza", stanzas).split("\n")).toEqual([
      "Types: deb",
      "Suites: sid",
      "Components: main",
      "URIs: http://mirror.example/debian",
      "Signed-By: /usr/share/keyrings/mirror.gpg",
    ]);
  });

  test("is found by its suite, not by one that begins alike", () => {
    expect(ask("deb822_stanza", stanzas, "bookworm-security")).toContain("debian-security");
    expect(ask("deb822_stanza", stanzas, "book")).toBe("");
  });

  test("keeps a key written into the source and a suite list on a second line", () => {
    const text = `Types: deb
URIs: mirror+file:/etc/apt/mirrors.txt
Suites: bullseye
 bookworm
Components: main
 contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
`;
    const source = ask("deb822_stanza", text);
    expect(source).toContain("URIs: mirror+file:/etc/apt/mirrors.txt");
    expect(source).toContain("Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc");
    expect(source).not.toContain("contrib");
  });

  test("is passed over when it is switched off or has sources only", () => {
    expect(ask("deb822_stanza", stanzas.replace("Suites: bookworm ", "Enabled: no\nSuites: bookworm "))).toBe("");
    expect(ask("deb822_stanza", stanzas.replace("deb deb-src", "deb-src"))).toBe("");
  });
});

describe("a one-line source", () => {
  test("keeps its options", () => {
    const text = `# deb http://old.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg]  https://mirror.example/debian  bookworm main contrib
`;
    expect(ask("one_line", text)).toBe("deb [arch=amd64 signed-by=/k.gpg] https://mirror.example/debian sid main");
  });

  test("may have no options", () => {
    expect(ask("one_line", "deb http://mirror.example/debian bookworm main\n")).toBe(
      "deb http://mirror.example/debian sid main",
    );
  });
});

describe("among the sources of a machine", () => {
  /** The source for bookworm-backports, or its pocket, of a machine with these files below /etc/apt. */
  function chosen(files: Readonly<Record<string, string>>, own = "bookworm"): string {
    const apt = mkdtempSync(join(directory, "apt-"));
    mkdirSync(join(apt, "sources.list.d"));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(apt, name), text);
    const script = 'set -euo pipefail; . "$1"; APT_SOURCES=$2; apt_source_for "$3" wanted main || echo none';
    return execFileSync("bash", ["-c", script, "bash", library, apt, own], { encoding: "utf8" }).trim();
  }
  const DEBIAN =
    "deb http://mirror.example/debian bookworm main\ndeb http://mirror.example/sec bookworm-security main\n";
  const stanza = (address: string, components: string, keys = "", suites = "bookworm") =>
    `Types: deb\nURIs: ${address}\nSuites: ${suites}\nComponents: ${components}\n${keys}`;
  const DEBIAN_STANZA = stanza(
    "http://mirror.example/debian",
    "main",
    "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n",
  );

  test.each([
    [
      "Docker's file of stanzas",
      "docker.sources",
      stanza("https://docker.example/linux/debian", "stable", "Signed-By: /etc/apt/keyrings/docker.asc\n"),
    ],
    [
      "one with a component main and a key of its own",
      "azure-cli.sources",
      stanza("https://microsoft.example/azure-cli", "main", "Signed-by: /etc/apt/keyrings/microsoft.gpg\n"),
    ],
    [
      "one with its key written into it",
      "a.sources",
      stanza("https://a.example", "main", "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n"),
    ],
    [
      "one whose keyring is named like the distribution's",
      "hashicorp.list",
      "deb [signed-by=/usr/share/keyrings/hashicorp-archive-keyring.gpg] https://h.example bookworm main\n",
    ],
  ])("%s is not taken for the distribution's, which has the same suite", (_what, name, text) => {
    const others = { [`sources.list.d/${name}`]: text };
    expect(chosen({ "sources.list": DEBIAN, ...others })).toBe("list\ndeb http://mirror.example/debian wanted main");
    expect(chosen({ "sources.list.d/debian.sources": DEBIAN_STANZA, ...others })).toContain(
      "URIs: http://mirror.example/debian\n",
    );
  });

  test("a mirror with a key of its own is taken where the distribution's own source is not there", () => {
    const mirror = stanza(
      "https://company.example/bookworm",
      "main contrib",
      "Signed-By: /etc/apt/keyrings/company.gpg\n",
    );
    const docker = "deb [signed-by=/d.asc] https://docker.example/linux/debian bookworm stable\n";
    expect(chosen({ "sources.list": docker, "sources.list.d/z.sources": mirror })).toContain("company.example");
    expect(chosen({ "sources.list": docker })).toBe(
      "list\ndeb [signed-by=/d.asc] https://docker.example/linux/debian wanted main",
    );
    expect(chosen({})).toBe("none");
  });

  test.each([
    ["bookworm", "stable", "debian"],
    ["bookworm", "oldstable", "debian"],
    ["forky", "testing", "debian"],
    ["bookworm-security", "stable-security", "debian-security"],
  ])("%s is found as %s, and not at a browser's address with a suite of that name", (own, name, folder) => {
    const browser = "deb [arch=amd64] https://browser.example/deb/ stable main\n";
    const text = `${browser}deb http://mirror.example/${folder} ${name} main contrib\n`;
    expect(chosen({ "sources.list": text }, own)).toBe(`list\ndeb http://mirror.example/${folder} wanted main`);
    expect(chosen({ "sources.list": browser }, own)).toBe("none");
  });
});
