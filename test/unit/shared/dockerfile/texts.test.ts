/** Texts of a Dockerfile that COPY and ADD make files of. */

import { expect, test } from "vitest";
import { readDockerfile } from "../../../../shared/dockerfile/dockerfile.ts";

test("a text in the Dockerfile is a file that COPY and ADD bring, as in Docker with quotes and without backslashes", () => {
  const copies = (text: string) =>
    readDockerfile(`FROM base\n${text}`).steps.filter(({ type }) => type === "COPY" || type === "RUN");
  expect(copies('ENV V=1\nCOPY <<EOF /etc/app.conf\n# kept\nv="$V" ${V:-2} \\$V \\\\ it\'s\n\nEOF\nRUN true')).toEqual([
    { type: "COPY", args: ["EOF", "/etc/app.conf", "root", "644"], text: '# kept\nv="1" 1 $V \\ it\'s\n\n' },
    { type: "RUN", args: ["true"] },
  ]);
  const several = "COPY --chown=app --chmod=755 <<-'a.sh' here <<B /srv/\n\t#!/bin/sh\n\techo \\$1 $X\n\ta.sh\nB";
  expect(copies(several)).toEqual([
    { type: "COPY", args: ["a.sh", "/srv/", "app", "755"], text: "#!/bin/sh\necho \\$1 $X\n" },
    { type: "COPY", args: ["here", "/srv/", "app", "755"] },
    { type: "COPY", args: ["B", "/srv/", "app", "755"], text: "" },
  ]);
  expect(copies("ADD <<x.tar /srv/\nhi\nx.tar")).toEqual([
    { type: "COPY", args: ["x.tar", "/srv/", "root", "644"], text: "hi\n" },
  ]);
});

test.each([
  ["COPY a <<EOF\nhi\nEOF", "<<EOF is a text, and no destination"],
  [
    "ENV V=1\nCOPY <<EOF /x\nC:\\\\$V\nEOF",
    "the text that <<EOF begins has a backslash before a variable, which no value can have here: <<'EOF' keeps the text as it is",
  ],
  [
    "COPY <<EOF /x\n$V\nEOF",
    "$V has no value that the file gives: ARG and ENV set one, and <<'EOF' keeps the text as it is",
  ],
])("%j is refused in one line, with the way out", (text, why) => {
  const line = text.split("\n").findIndex((each) => each.startsWith("COPY")) + 2;
  expect(() => readDockerfile(`FROM base\n${text}`)).toThrow(new Error(`Dockerfile, line ${line}: ${why}`));
});
