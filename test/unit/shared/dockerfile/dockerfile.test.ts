/** A Dockerfile as the steps of a build. */

import { expect, test } from "vitest";
import { readDockerfile } from "../../../../shared/dockerfile/dockerfile.ts";

/** The steps between those that every file gets. */
const steps = (text: string, given = {}) =>
  readDockerfile(`FROM base\n${text}`, given)
    .steps.slice(2)
    .map(({ type, args }) => [type, ...args]);
const user = ["USER", "user"];
const home = ["WORKDIR", "/home/user"];

test("a file begins as root in /, and ends as the sandboxes' user at home unless it says otherwise", () => {
  expect(readDockerfile("FROM python:3.12").steps).toEqual([
    { type: "USER", args: ["root"] },
    { type: "WORKDIR", args: ["/"] },
    { type: "USER", args: ["user"] },
    { type: "WORKDIR", args: ["/home/user"] },
  ]);
  expect(steps("USER app\nWORKDIR /srv")).toEqual([
    ["USER", "app"],
    ["WORKDIR", "/srv"],
  ]);
});

test("RUN keeps its shell form, with lines joined and comments between them left out", () => {
  const text = "RUN apt-get update && \\\n  # why\n\n  apt-get install -y curl";
  expect(steps(text)[0]).toEqual(["RUN", "apt-get update &&    apt-get install -y curl"]);
});

test("RUN in exec form is quoted for a shell", () => {
  expect(steps(`RUN ["echo", "a b", "it's"]`)[0]).toEqual(["RUN", "echo 'a b' 'it'\\''s'"]);
});

test("RUN with a text of several lines runs it, alone or as the input of a program", () => {
  expect(steps("RUN <<EOT\nset -e\n# kept\necho hi\nEOT")[0]).toEqual(["RUN", "set -e\n# kept\necho hi"]);
  expect(steps("RUN python3 <<EOF\nprint(1)\nEOF")[0]).toEqual(["RUN", "python3 <<EOF\nprint(1)\nEOF"]);
});

test("RUN with a text that names its interpreter is run by that", () => {
  expect(steps("RUN <<EOF\n#!/usr/bin/env python3\nprint(1)\nEOF")[0]).toEqual([
    "RUN",
    "svc_file=$(mktemp) && cat >\"$svc_file\" <<'EOF'\n#!/usr/bin/env python3\nprint(1)\nEOF\n" +
      'chmod 0755 "$svc_file" && "$svc_file"; svc_code=$?; rm -f "$svc_file"; exit $svc_code',
  ]);
  expect(steps("RUN <<-EOF\n\techo hi\nEOF")[0]).toEqual(["RUN", "echo hi"]);
});

test("ENV keeps quoted values with blanks", () => {
  expect(steps(`ENV A="a b" B=c\nENV C d e`)).toEqual([["ENV", "A", "a b", "B", "c"], ["ENV", "C", "d e"], user, home]);
});

test("COPY makes a step for each source, with owner and mode", () => {
  expect(steps('COPY --chown=app:app --chmod=755 a /b/ /dst/\nCOPY ["x y", "/z"]\nCOPY . .')).toEqual([
    ["COPY", "a", "/dst/", "app:app", "755"],
    ["COPY", "b/", "/dst/", "app:app", "755"],
    ["COPY", "x y", "/z", "root", ""],
    ["COPY", ".", ".", "root", ""],
    user,
    home,
  ]);
});

test("ARG before FROM is known to FROM, and after it is a variable with the value that is given", () => {
  const { from } = readDockerfile("ARG V=3.11\nFROM python:${V}", { V: "3.12" });
  expect(from).toBe("python:3.12");
  expect(steps("ARG NAME=x", { NAME: "y" })[0]).toEqual(["ENV", "NAME", "y"]);
});

test("ARG after FROM takes the value that it had before, unless it has one of its own", () => {
  expect(steps("ARG V", {})).toEqual([user, home]);
  const text = (line: string) => readDockerfile(`ARG V=1\nARG W=$V.2\nFROM base:$W\n${line}`).steps[2];
  expect(readDockerfile("ARG V=1\nARG W=$V.2\nFROM base:${W:-none}").from).toBe("base:1.2");
  expect(text("ARG W")).toEqual({ type: "ENV", args: ["W", "1.2"] });
  expect(text("ARG W=3")).toEqual({ type: "ENV", args: ["W", "3"] });
});

test("ARG without a value sets nothing, and one that ENV has set stays as it is", () => {
  expect(readDockerfile("FROM base\nARG HTTP_PROXY").notes).toEqual(["line 2: ARG HTTP_PROXY has no value"]);
  expect(steps("ENV A=1\nARG A=2")).toEqual([["ENV", "A", "1"], user, home]);
});

test("a value between single quotes, and one that is given, has no variables", () => {
  expect(steps("ENV A='$B' C=\"$B\"")[0]).toEqual(["ENV", "A", "\\$B", "C", "$B"]);
  expect(steps("ARG A", { A: "$B" })[0]).toEqual(["ENV", "A", "\\$B"]);
});

test("sources of COPY have the variables of the file", () => {
  const text = "ARG JAR=app.jar\nENV DIR=target\nCOPY ${DIR}/$JAR ${NONE:-conf}/x /srv/";
  expect(steps(text).slice(2, 4)).toEqual([
    ["COPY", "target/app.jar", "/srv/", "root", ""],
    ["COPY", "conf/x", "/srv/", "root", ""],
  ]);
});

test("line ends of Windows and a byte order mark change nothing of what a file says", () => {
  const text = "\uFEFFFROM base\r\nRUN a && \\\r\n  b\r\nCOPY x /y\r\n";
  expect(readDockerfile(text).steps.slice(2, 4)).toEqual([
    { type: "RUN", args: ["a &&    b"] },
    { type: "COPY", args: ["x", "/y", "root", ""] },
  ]);
});

test("RUN with a mounted cache runs without it, and says so", () => {
  const { steps: all, notes } = readDockerfile("FROM base\nRUN --mount=type=cache,target=/root/.cache pip install x");
  expect(all[2]).toEqual({ type: "RUN", args: ["pip install x"] });
  expect(notes).toEqual(["line 2: --mount=type=cache keeps no cache, and its files stay in the template"]);
});

test.each([
  ["CMD python3 -m http.server", "python3 -m http.server"],
  ['CMD ["python3", "a b.py"]', "python3 'a b.py'"],
  ['ENTRYPOINT ["serve"]\nCMD ["--port", "80"]', "serve --port 80"],
  ["ENTRYPOINT serve\nCMD more", "serve"],
  ["RUN true", undefined],
])("the start command of %j is %j", (text, wanted) => {
  expect(readDockerfile(`FROM base\n${text}`).startCommand).toBe(wanted);
});

test("what means nothing to a sandbox is told", () => {
  expect(readDockerfile("FROM base\nEXPOSE 80\nLABEL a=b").notes).toEqual([
    "line 2: EXPOSE means nothing to a sandbox",
    "line 3: LABEL means nothing to a sandbox",
  ]);
});

test.each([
  ["RUN true", "the Dockerfile has no FROM"],
  ["FROM a\nFROM b", "line 2: a template has one FROM"],
  ["FROM a\nRUN --mount=target=/c true", "line 2: --mount of type bind is not supported"],
  ["FROM a\nRUN --network=none true", "line 2: --network is not supported"],
  ["FROM a\nCOPY --from=b /x /y", "line 2: --from is not supported"],
  ["FROM a\nCOPY only", "line 2: a source and a destination"],
  ["FROM a\nCOPY a b dst", "line 2: the destination of several sources"],
  ["FROM a\nADD https://example.com/x /x", "line 2: ADD of 'https://example.com/x'"],
  ["FROM a\nADD app.tar.gz /x", "line 2: ADD of 'app.tar.gz'"],
  ['FROM a\nSHELL ["/bin/dash", "-c"]', "line 2: SHELL is not supported"],
  ["FROM a\nONBUILD RUN true", "line 2: ONBUILD is not supported"],
  ["FROM a\nARG TARGETARCH", "line 2: ARG TARGETARCH has no value"],
  ["FROM a:$V", "line 1: $V has no value"],
  ["FROM a\nCOPY $BASE/x /y", "line 2: $BASE has no value"],
  ["FROM a\nENV P=/x:$PATH\nCOPY $P /y", "line 3: $P has no value"],
  ["FROM a\nARG X=1\nCOPY ${X:0} /y", "line 3: the reference '${X:0' cannot be substituted"],
  ["FROM --platform=linux/arm64 a", "line 1: --platform is not supported"],
])("%j is refused: %s", (text, why) => {
  expect(() => readDockerfile(text)).toThrow(why);
});
