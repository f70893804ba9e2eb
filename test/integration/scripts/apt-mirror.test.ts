/** The script turns the machine's own apt sources, in either format, into a source for another suite. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
