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
  expect(steps(text)[0]).toEqual(["RUN", "apt-get update &&   apt-get install -y curl"]);
});

test("a line that goes on has no blank before the next, as in the middle of an address", () => {
  expect(steps("RUN curl https://example.com/\\\nfile \\\n\t# why\n -o x")[0]).toEqual([
    "RUN",
    "curl https://example.com/file  -o x",
  ]);
});

test("RUN in exec form is quoted for a shell", () => {
  expect(steps(`RUN ["echo", "a b", "it's"]`)[0]).toEqual(["RUN", "echo 'a b' 'it'\\''s'"]);
});

test("SHELL is the shell of every shell form after it", () => {
  const bash = 'SHELL ["/bin/bash", "-o", "pipefail", "-c"]';
  const text = `RUN a\n${bash}\nRUN a | b\nRUN ["c"]\nRUN <<EOT\nd\ne\nEOT\nSHELL ["/bin/sh","-c"]\nRUN echo "it's"`;
  expect(steps(text).slice(0, 5)).toEqual([
    ["RUN", "a"],
    ["RUN", "/bin/bash -o pipefail -c 'a | b'"],
    ["RUN", "c"],
    ["RUN", "/bin/bash -o pipefail -c 'd\ne'"],
    ["RUN", "/bin/sh -c 'echo \"it'\\''s\"'"],
  ]);
  expect(steps(`${bash}\nRUN <<EOF\n#!/usr/bin/env python3\nEOF`)[0]?.[1]).toMatch(/^svc_file=/);
});

test("RUN with a text of several lines runs it, alone or as the input of a program", () => {
  expect(steps("RUN <<EOT\nset -e\n# kept\necho hi\nEOT")[0]).toEqual(["RUN", "set -e\n# kept\necho hi"]);
  expect(steps("RUN python3 <<EOF\nprint(1)\nEOF")[0]).toEqual(["RUN", "python3 <<EOF\nprint(1)\nEOF"]);
  expect(steps("RUN cat \\\n# why\n <<'A' <<B \\\n >/x\n# kept \\\nA\n\"b\nB\nRUN c").slice(0, 2)).toEqual([
    ["RUN", "cat  <<'A' <<B  >/x\n# kept \\\nA\n\"b\nB"],
    ["RUN", "c"],
  ]);
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

test.each([
  ['ENV P="/opt/bin":$PATH', ["P", "/opt/bin:$PATH"]],
  ["ENV A=a\\ b B='it''s' C=\"x'y\"", ["A", "a b", "B", "its", "C", "x'y"]],
  ['ENV A=1 \\\n# why\n\n  B="x \\\n y"', ["A", "1", "B", "x  y"]],
  ["ENV A 'b  c' d=e", ["A", "b  c d=e"]],
  ['ENV A=${B:-"x y"}', ["A", "${B:-x y}"]],
  ["env A=", ["A", ""]],
])("%j sets %j", (text, variables) => {
  expect(steps(text)[0]).toEqual(["ENV", ...variables]);
});

test("values of one ENV see what was set before it, and not each other", () => {
  expect(steps("ENV A=1 B=$A C=$B")[0]).toEqual(["ENV", "C", "$B", "B", "$A", "A", "1"]);
  expect(steps("ENV A=1 PATH=/x:$PATH A=2")[0]).toEqual(["ENV", "A", "2", "PATH", "/x:$PATH"]);
});

test("USER and WORKDIR lose their quotes", () => {
  expect(steps('USER "app":staff\nWORKDIR "/a b"')).toEqual([
    ["USER", "app:staff"],
    ["WORKDIR", "/a b"],
  ]);
});

test("flags are read before what they are for, also on lines of their own", () => {
  const text = 'ARG M=755\nCOPY --link --chown=app \\\n  # why\n  --chmod="0$M" \\\n  a /b';
  expect(steps(text)[1]).toEqual(["COPY", "a", "/b", "app", "0755"]);
  expect(steps("RUN --mount=type=cache,target=/c \\\n  --mount=type=cache,target=/d make")[0]).toEqual(["RUN", "make"]);
});

test.each(["linux/amd64", "amd64", "Linux/x86_64", "linux", "$BUILDPLATFORM", "${TARGETPLATFORM:-linux/arm64}", ""])(
  "FROM with the platform of the machines, %j, is FROM without one",
  (platform) => {
    expect(readDockerfile(`FROM --platform=${platform} python:3.12 AS app`).from).toBe("python:3.12");
  },
);

test.each(["u+x", "+x", "u=rwX,go=rX", "g=u,o-w", "a+rX-w"])("the symbolic mode %s of COPY is passed on", (mode) => {
  expect(steps(`COPY --chmod=${mode} a /b`)[0]).toEqual(["COPY", "a", "/b", "root", mode]);
});

test("lines for Docker's own reader change nothing, and another reader is told", () => {
  const notes = (text: string) => readDockerfile(`${text}FROM base AS Last\n`).notes;
  expect(notes("# syntax=docker/dockerfile:1.7-labs\n# check=skip=all\n# escape=\\\n")).toEqual([]);
  expect(notes("#syntax=example.com/other:1\n")).toEqual([
    "the syntax example.com/other:1 is read as that of docker/dockerfile",
  ]);
});

test("a build argument that no ARG asks for is told", () => {
  expect(readDockerfile("ARG A\nFROM base\nARG B", { A: "1", B: "2", C: "3" }).notes).toEqual([
    "line 3: ARG B is an environment variable, also in sandboxes",
    "no ARG asks for the build argument C",
  ]);
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

test("several sources go to what is a directory by its name", () => {
  expect(steps("COPY a b .\nCOPY a b /x/.").slice(0, 4)).toEqual([
    ["COPY", "a", ".", "root", ""],
    ["COPY", "b", ".", "root", ""],
    ["COPY", "a", "/x/.", "root", ""],
    ["COPY", "b", "/x/.", "root", ""],
  ]);
});

test("words of COPY lose their quotes, also where only a part of one has them", () => {
  expect(steps("ENV APP=/srv\nCOPY \"$APP\"/a 'b'c \"$APP\"/\nCOPY x '$y'/").slice(1, 4)).toEqual([
    ["COPY", "srv/a", "$APP/", "root", ""],
    ["COPY", "bc", "$APP/", "root", ""],
    ["COPY", "x", "\\$y/", "root", ""],
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
    { type: "RUN", args: ["a &&   b"] },
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
  ['ENTRYPOINT ["sh", "-c"]\nCMD run \\\n# why\n  it', "sh -c /bin/sh -c 'run   it'"],
  ['ENTRYPOINT []\nCMD ["serve"]', "serve"],
  ['ENTRYPOINT ["serve"]\nCMD []', "serve"],
  ["CMD ['serve']", "['serve']"],
  ['SHELL ["/bin/bash", "-c"]\nCMD a b', "/bin/bash -c 'a b'"],
  ['SHELL ["/bin/bash", "-c"]\nENTRYPOINT a b\nCMD more', "/bin/bash -c 'a b'"],
  ['SHELL ["/bin/bash", "-c"]\nENTRYPOINT ["tini", "--"]\nCMD a b', "tini -- /bin/bash -c 'a b'"],
  ['CMD a b\nSHELL ["/bin/bash", "-c"]', "a b"],
  ["ENTRYPOINT []", undefined],
  ["RUN true", undefined],
])("the start command of %j is %j", (text, wanted) => {
  expect(readDockerfile(`FROM base\n${text}`).startCommand).toBe(wanted);
});

test("a file that asks for the platform gets it, as from Docker", () => {
  const asked = steps("ARG TARGETARCH\nARG TARGETOS BUILDPLATFORM TARGETVARIANT\nRUN x").slice(0, 4);
  expect(asked).toEqual([
    ["ENV", "TARGETARCH", "amd64"],
    ["ENV", "TARGETOS", "linux"],
    ["ENV", "BUILDPLATFORM", "linux/amd64"],
    ["ENV", "TARGETVARIANT", ""],
  ]);
  expect(readDockerfile("FROM app:$TARGETOS-${TARGETARCH}").from).toBe("app:linux-amd64");
  expect(readDockerfile("ARG BASE=app:$TARGETARCH\nFROM $BASE").from).toBe("app:amd64");
  // A value of the file's own, and one that is given, go before it.
  expect(steps("ARG TARGETARCH=x64")[0]).toEqual(["ENV", "TARGETARCH", "x64"]);
  expect(steps("ARG TARGETARCH", { TARGETARCH: "x86" })[0]).toEqual(["ENV", "TARGETARCH", "x86"]);
});

test("the destination of several sources may be a variable with / at its end", () => {
  expect(steps("ENV D=/srv/\nCOPY a b $D").slice(1, 3)).toEqual([
    ["COPY", "a", "$D", "root", ""],
    ["COPY", "b", "$D", "root", ""],
  ]);
});

test("what means nothing to a sandbox is told", () => {
  expect(readDockerfile("FROM base\nEXPOSE 80\nLABEL a=b").notes).toEqual([
    "line 2: EXPOSE means nothing to a sandbox",
    "line 3: LABEL means nothing to a sandbox",
  ]);
});

test.each([
  ["RUN true", "the Dockerfile has no FROM"],
  [Buffer.from("\uFEFFFROM a", "utf16le").toString("utf8"), "the Dockerfile is not UTF-8 text, but perhaps UTF-16"],
  ["FROM a\nRUN --mount=target=/c true", "line 2: --mount of type bind is not supported: COPY the files before"],
  ["FROM a\nRUN --network=none true", "line 2: --network is not supported"],
  ["FROM a\nCOPY --from=b /x /y", "line 2: --from is not supported, because a template is made from one image"],
  ["FROM a AS x\nRUN b\nFROM a\nCOPY --from=x /y /z", "line 4: --from is not supported"],
  ["FROM a AS x\nFROM scratch", "line 2: the image scratch is empty"],
  ["FROM a AS\nFROM b", "line 1: FROM takes an image"],
  ["FROM a\nCOPY only", "line 2: a source and a destination"],
  ["FROM a\nCOPY a b dst", "line 2: the destination of several sources"],
  ["FROM a\nADD https://example.com/x /x", "line 2: ADD of 'https://example.com/x'"],
  ["FROM a\nADD app.tar.gz /x", "line 2: ADD of 'app.tar.gz'"],
  ["FROM a\nSHELL /bin/dash -c", "line 2: SHELL takes a list of words"],
  ["FROM a\nSHELL []", "line 2: SHELL takes a list of words"],
  ['FROM a\nCOPY "a b" /c', "line 2: '\"a' has a quote without an end"],
  ["FROM a\nONBUILD RUN true", "line 2: ONBUILD is not supported"],
  ["FROM a\nENV D=/srv\nCOPY a b $D", "line 3: the destination of several sources"],
  ["FROM a\nCOPY a b $HOME", "line 2: the destination of several sources"],
  ["FROM scratch\nCOPY app /", "line 1: the image scratch is empty"],
  ["FROM a\nUSER", "line 2: USER takes a value"],
  ['FROM a\nWORKDIR ""', "line 2: WORKDIR takes a value"],
  ["FROM a:$V", "line 1: $V has no value"],
  ["ARG V\nFROM a:$V", "line 2: $V has no value that the file gives: ARG sets one before the first FROM"],
  ["ARG V\nFROM $V", "line 2: $V has no value"],
  ["ARG V\nFROM a:$V-slim", "line 2: $V has no value"],
  ["ARG V\nFROM $V/a", "line 2: $V has no value"],
  ["FROM a\nRUN --mount=type=constructor true", "line 2: --mount of type constructor is not supported"],
  ["FROM a\nRUN --mount=type=secret,id=x true", "line 2: --mount of type secret is not supported"],
  ["FROM a\nCOPY $BASE/x /y", "line 2: $BASE has no value"],
  ["FROM a\nENV P=/x:$PATH\nCOPY $P /y", "line 3: $P has no value"],
  ["FROM a\nARG X=1\nCOPY ${X:0} /y", "line 3: the reference '${X:0' cannot be substituted"],
  [
    "FROM --platform=linux/arm64 a",
    "line 1: --platform=linux/arm64 is not linux/amd64, on which templates run: name an",
  ],
  ["ARG P=windows\nFROM --platform=$P a", "line 2: --platform=windows is not linux/amd64"],
  ["FROM --platform=$P a", "line 1: $P has no value"],
  ["FROM a b", "line 1: FROM takes an image"],
  ["# escape=`\nFROM a", "another escape character"],
  ["FROM a\nCOPY --chmod=u a /b", "line 2: --chmod takes a mode such as 755 or u+x, not 'u'"],
  ["FROM a\nCOPY --chmod=17777 a /b", "line 2: --chmod takes a mode such as 755 or u+x, not '17777'"],
  ["FROM a\nCOPY --exclude=*.md a /b", "line 2: --exclude is not supported"],
  ["FROM a\nCOPY \\\n  --parents a /b", "line 2: --parents is not supported"],
  ["FROM a\nADD --checksum=sha256:1 a /b", "line 2: --checksum is not supported"],
  ["FROM a\nARG U=https://example.com/x\nADD $U /x", "line 3: ADD of 'https://example.com/x'"],
  ["FROM a\nCOPY <<EOF /x\nhi", "line 2: the text that <<EOF begins has no end"],
  [
    "FROM a\nCOPY <<EOF /x\n$uri\nEOF",
    "line 2: $uri has no value that the file gives: ARG and ENV set one, and <<'EOF'",
  ],
  ["FROM a\nCOPY <<etc/app /x\nhi\netc/app", "line 2: <<etc/app: 'etc/app' is not the name of a file"],
  ["FROM a\nCOPY <<A <<B /x\na\nA\nb\nB", "line 2: the destination of several sources"],
  ["FROM a\nCMD --x", "line 2: --x is not supported"],
  ["FROM a\nENV A=it's", "line 2: 'it's' has a quote without an end"],
  ["FROM a\nENV A=1 B", "line 2: 'B' has no ="],
  ["FROM a\nENV A", "line 2: ENV takes a name and a value"],
  ["FROM a\nENV A=$B B=$A", "line 2: its values read each other"],
  ["FROM a\nENV A=x\\\\$B", "line 2: 'x\\\\$B' has a backslash before a variable"],
  ["FROM a\nRUN <<EOF\necho hi\n EOF\nUSER x", "line 2: the text that <<EOF begins has no end"],
  ["FROM a\nRUN echo a\\\\\nRUN b", "line 2: two backslashes at the end of a line"],
])("%j is refused: %s", (text, why) => {
  expect(() => readDockerfile(text)).toThrow(why);
});
