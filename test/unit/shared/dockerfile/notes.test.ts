/** What a Dockerfile means here that its author may not expect, and what it means as in Docker. */

import { expect, test } from "vitest";
import { readDockerfile } from "../../../../shared/dockerfile/dockerfile.ts";

test("an ARG before FROM that has no value is empty there, as in Docker", () => {
  expect(readDockerfile("ARG REGISTRY\nFROM ${REGISTRY}node:20").from).toBe("node:20");
  expect(readDockerfile("ARG V\nFROM node:20$V").from).toBe("node:20");
  expect(readDockerfile("ARG R\nARG IMAGE=${R}node\nFROM $IMAGE").from).toBe("node");
  // It is unset, and not an empty text.
  expect(readDockerfile("ARG V\nFROM node:${V-20}").from).toBe("node:20");
  expect(readDockerfile("ARG R\nFROM ${R}node\nARG R").notes).toEqual(["line 3: ARG R has no value"]);
  expect(readDockerfile("ARG REGISTRY\nFROM ${REGISTRY}node", { REGISTRY: "r.example/" }).from).toBe("r.example/node");
});

test.each(["CMD ['npm', 'start']", "ENTRYPOINT [ “npm”, “start” ]", 'RUN ["npm" "ci"]', 'CMD ["npm", "start",]'])(
  "of %s, which is no list, a note says so",
  (text) => {
    const [keyword = ""] = text.split(" ");
    expect(readDockerfile(`FROM a\n${text}\nUSER app\nWORKDIR /srv`).notes).toEqual([
      `line 2: ${keyword} is no list in JSON, so a shell runs it with its brackets: put each word between "", with commas`,
    ]);
  },
);

test("a file with a start command and without USER or WORKDIR says as whom and where it runs", () => {
  const user = "the file has no USER: what it starts runs as user, in Docker as that of the image, root in most";
  const place = "the file has no WORKDIR: what it starts runs in /home/user, in Docker in that of the image, / in most";
  expect(readDockerfile("FROM a\nCMD serve").notes).toEqual([user, place]);
  expect(readDockerfile("FROM a\nWORKDIR /app\nENTRYPOINT serve").notes).toEqual([user]);
  expect(readDockerfile("FROM a\nUSER root\nCMD serve").notes).toEqual([place]);
  expect(readDockerfile("FROM a\nRUN true").notes).toEqual([]);
});

test.each(['echo "a\\nb" >/f', "true && echo -n 'a\\tb'", "echo '#!/bin/sh\\n\\\nexit 1\\n\\\n' >/f"])(
  "of RUN %s, which bash does not do as Debian's sh, a note says so",
  (command) => {
    expect(readDockerfile(`FROM a\nRUN ${command}`).notes).toEqual([
      expect.stringContaining("line 2: echo of bash writes \\n as it is") as string,
    ]);
  },
);

test.each([
  'RUN [ "$A" = "b" ]',
  "RUN [[ -f /x ]] && echo [a]",
  'RUN echo -e "a\\nb"',
  'RUN echo "a" && printf "b\\n"',
  'SHELL ["/bin/sh", "-c"]\nRUN echo "a\\nb"',
  'RUN ["echo", "a\\nb"]',
  "RUN --network=default true",
])("%j has no note", (text) => {
  expect(readDockerfile(`FROM a\n${text}`).notes).toEqual([]);
});
