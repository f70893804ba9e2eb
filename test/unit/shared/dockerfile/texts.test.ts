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
