import * as fc from "fast-check";
import { expect, test } from "vitest";
import { isBaseName, matchesAny, parseImageName, starterOf } from "../../../../agent/builds/images/image-name.ts";
import { cachedSteps, type Definition, planSteps } from "../../../../agent/builds/images/layer-key.ts";
import {
  contextAfter,
  contextOf,
  needsHome,
  ownerOf,
  resolveStep,
  type StepContext,
} from "../../../../agent/builds/steps/context.ts";
import type { BuildStep } from "../../../../shared/agent-api/build-shapes.ts";
import { substitute } from "../../../../shared/dockerfile/substitute.ts";
import { AppError } from "../../../../shared/http/errors.ts";

const common = { number: 1, force: false };
const env = (...variables: [string, string][]): BuildStep => ({ ...common, type: "ENV", variables });
const run = (command: string): BuildStep => ({ ...common, type: "RUN", command });
const after = (context: StepContext, ...steps: BuildStep[]) =>
  steps.reduce((before, step) => contextAfter(resolveStep(step, before, HOME), before), context);
const HOME = "/srv/home";
const start = contextOf(["PATH=/usr/bin", "LANG=C.UTF-8", "SVC_ENVD_CONTROL=secret"]);

test("a build starts with the image's variables and without the platform's own", () => {
  expect(start).toEqual({ envs: { PATH: "/usr/bin", LANG: "C.UTF-8" }, user: "user", workdir: "/home/user" });
});

// Values of ENV steps.
test.each([
  ["a plain value", "value", "value"],
  ["a reference", "$BASE/x", "/opt/x"],
  ["a braced reference", "a${BASE}b", "a/optb"],
  ["an unknown name", "a$NOTHING-b", "a-b"],
  ["a default", "${NOTHING:-d}${BASE:+set}", "dset"],
  ["an escaped reference", "\\$BASE", "$BASE"],
  ["dashes of a PEM", "-----BEGIN KEY-----\nab+/=\n-----END KEY-----", "-----BEGIN KEY-----\nab+/=\n-----END KEY-----"],
  ["double quotes", '{"a":"b"}', '{"a":"b"}'],
  ["single quotes", "it's", "it's"],
  ["backslashes", "C:\\dir\\new", "C:\\dir\\new"],
  ["lines", "one\ntwo", "one\ntwo"],
  ["backticks", "`id`", "`id`"],
  ["a command", "$(id)", "$(id)"],
  ["a lone dollar", "5$ $1 $$", "5$ $1 $$"],
  ["a default in a default", "${NOTHING:-${ALSO:-${BASE}/x}}", "/opt/x"],
  ["an alternative in an alternative", "/a${NOTHING:+:${NOTHING}}", "/a"],
  ["an alternative with its own name", "/a${BASE:+:${BASE}}", "/a:/opt"],
  ["an empty value, which is none with a colon", "${EMPTY:-a}${EMPTY:+b}", "a"],
  ["an empty value, which is one without a colon", "${EMPTY-a}${EMPTY+b}", "b"],
  ["an unknown name without a colon", "${NOTHING-a}${NOTHING+b}", "a"],
  ["a value that has to be there", "${BASE:?it is needed}", "/opt"],
  ["the shortest end", "${FILE%.*}", "/d/a.tar"],
  ["the longest end", "${FILE%%.*}", "/d/a"],
  ["the shortest front", "${FILE#*/}", "d/a.tar.gz"],
  ["the longest front", "${FILE##*/}", "a.tar.gz"],
  ["an end that does not match", "${FILE%.zip}", "/d/a.tar.gz"],
  ["one letter of a pattern", "${FILE%.?z}", "/d/a.tar"],
  ["a pattern with its stars escaped", "${STARS#\\*}", "*"],
  ["a pattern from a variable", "${FILE%$SUFFIX}", "/d/a.tar"],
  ["the first match replaced", "${FILE/a/b}", "/d/b.tar.gz"],
  ["all matches replaced", "${FILE//a/b}", "/d/b.tbr.gz"],
  ["matches removed", "${FILE//a}", "/d/.tr.gz"],
  ["a replacement with a reference", "${FILE/.tar.gz/${SUFFIX}}", "/d/a.gz"],
  ["an escaped brace in a word", "${NOTHING:-a\\}b}", "a}b"],
  ["letters outside of the basic plane", "${SMILE%?}", "a"],
])("ENV with %s sets the expected value", (_name, value, expected) => {
  const given = env(
    ["BASE", "/opt"],
    ["EMPTY", ""],
    ["FILE", "/d/a.tar.gz"],
    ["SUFFIX", ".gz"],
    ["STARS", "**"],
    ["SMILE", "a😀"],
  );
  expect(after(start, given, env(["X", value])).envs["X"]).toBe(expected);
});

test.each([
  ["a brace that is not closed", "a${BASE", "'}' is missing"],
  ["a default that is not closed", "a${BASE:-x", "'}' is missing"],
  ["a modifier that is not known", "${BASE!}", "'!' is not known there"],
  ["upper case as in bash", "${BASE^^}", "'^' is not known there"],
  ["a part as in bash", "${BASE:1:2}", "':1' is not known there"],
  ["no name", "${}", "a name must follow"],
  ["a number", "${1}", "a name must follow"],
  ["a value that is missing", "${NOTHING:?it is needed}", "it is needed"],
  ["a name with a dot", "${java.home}", "'.' is not known there"],
])("ENV with %s fails and names the reference", (_name, value, reason) => {
  expect(() => after(start, env(["BASE", "/opt"]), env(["X", value]))).toThrow(reason);
  expect(() => after(start, env(["BASE", "/opt"]), env(["X", value]))).toThrow("the reference '${");
});

test("a pattern that would take minutes fails", () => {
  const value = "a".repeat(50_000);
  expect(() => after(start, env(["A", value]), env(["X", "${A//*a*a*b/}"]))).toThrow("takes too long");
  expect(after(start, env(["A", value]), env(["X", "${A##*a}"])).envs["X"]).toBe("");
});

test("a replacement that would fill the memory fails", () => {
  const value = "a".repeat(40_000);
  expect(() => after(start, env(["A", value]), env(["X", "${A//a/$A}"]))).toThrow("is longer than");
});

test("a value of an ENV step sees the variables of that step before it, which a Dockerfile's would not", () => {
  const { envs } = after(start, env(["abc", "hello"]), env(["ghi", "$abc"], ["abc", "bye"], ["def", "$abc"]));
  expect(envs).toMatchObject({ ghi: "hello", abc: "bye", def: "bye" });
});

test("a substituted value is not substituted again", () => {
  expect(after(start, env(["A", "\\$PATH"]), env(["B", "$A"])).envs["B"]).toBe("$PATH");
  fc.assert(
    fc.property(fc.string(), (value) => {
      expect(substitute("$X", () => value)).toBe(value);
    }),
  );
});

test("ENV extends PATH also if the image does not set it", () => {
  expect(after(contextOf([]), env(["PATH", "/x:$PATH"])).envs["PATH"]).toMatch(/^\/x:\/usr\/local\/sbin:.*:\/bin$/);
});

test.each([
  [["/srv"], "/srv"],
  [["/srv", "app"], "/srv/app"],
  [["app"], "/home/user/app"],
  [["/srv", "../x/./y/"], "/x/y"],
  [["/srv/$LANG"], "/srv/C.UTF-8"],
])("WORKDIR %j is %s", (paths, expected) => {
  expect(after(start, ...paths.map((path): BuildStep => ({ ...common, type: "WORKDIR", path }))).workdir).toBe(
    expected,
  );
});

test.each([
  ["root", "root"],
  ["app:staff", "app:staff"],
  ["6001:6001", "6001:6001"],
  ["app:", "app"],
  ["$LANG:$PATH", "C.UTF-8:/usr/bin"],
  ["1000", "1000"],
])("USER %s is %s", (user, expected) => {
  expect(after(start, { ...common, type: "USER", user }).user).toBe(expected);
});

test("a user has the home that the image says, and no group in its name", () => {
  const steps: BuildStep[] = [{ ...common, type: "USER", user: "app:staff" }, env(["X", "$HOME $USER"])];
  expect(after(start, ...steps).envs["X"]).toBe(`${HOME} app`);
  expect([needsHome(env(["X", "$HOMER"]), start), needsHome(env(["X", "${A:-$HOME}"]), start)]).toEqual([false, true]);
  expect(needsHome(env(["X", "$HOME"]), after(start, env(["HOME", "/h"])))).toBe(false);
});

test("the owner of a COPY is substituted", () => {
  const copy: BuildStep = {
    ...common,
    type: "COPY",
    source: "a",
    destination: "/b",
    filesHash: "a".repeat(64),
    user: "$U:$G",
  };
  expect(resolveStep(copy, after(start, env(["U", "1000"], ["G", "s2"])), HOME)).toMatchObject({ user: "1000:s2" });
  expect(() => resolveStep({ ...copy, user: "a:b:c" }, start, HOME)).toThrow("invalid username: 'a:b:c'");
});

const definition = (more: Partial<Definition> = {}): Definition => ({
  templateId: "t",
  base: "sha256:1",
  context: start,
  steps: [env(["A", "1"]), run("one"), run("two")],
  force: false,
  ...more,
});
const keys = (more: Partial<Definition> = {}) => planSteps(definition(more)).map(({ key }) => key);

test("the same definition has the same cache keys, with any forced steps and step numbers", () => {
  const steps = definition().steps.map((step, index) => ({ ...step, number: index + 7, force: true }));
  expect(keys({ steps, force: true })).toEqual(keys());
  expect(new Set(keys()).size).toBe(3);
});

test.each<[string, Partial<Definition>]>([
  ["template", { templateId: "other" }],
  ["base", { base: "sha256:2" }],
  ["variables of the base", { context: { ...start, envs: {} } }],
  ["user of the base", { context: { ...start, user: "root" } }],
])("another %s changes the cache keys from the first step on", (_name, more) => {
  keys(more).forEach((key, index) => expect(key).not.toBe(keys()[index]));
});

test("a changed step changes the cache keys from that step on", () => {
  const [first, second, third] = keys({ steps: [env(["A", "1"]), run("other"), run("two")] });
  expect([first === keys()[0], second === keys()[1], third === keys()[2]]).toEqual([true, false, false]);
});

test.each([
  [undefined, "user"],
  ["", "user"],
  ["app", "app"],
  ["1234", "1234:1234"],
  ["1234:0", "1234:0"],
])("what a COPY of user %j brings belongs to %s", (user, expected) => {
  const copy = { ...common, type: "COPY" as const, source: "a", destination: "/b", filesHash: "0" };
  expect(ownerOf(user === undefined ? copy : { ...copy, user }, start)).toBe(expected);
});

test("the files of a COPY are part of its key", () => {
  const copy = (filesHash: string): BuildStep => ({
    ...common,
    type: "COPY",
    source: "a",
    destination: "b",
    filesHash,
  });
  expect(keys({ steps: [copy("a".repeat(64))] })).not.toEqual(keys({ steps: [copy("b".repeat(64))] }));
});

test("a build continues from the last cached layer before a forced step", () => {
  const plan = planSteps(definition());
  const known = (...indexes: number[]) => cachedSteps(plan, (key) => indexes.some((index) => plan[index]?.key === key));
  expect([known(), known(0), known(2), known(0, 1)]).toEqual([0, 1, 3, 2]);
  const [a, b, c] = definition().steps;
  if (a === undefined || b === undefined || c === undefined) throw new Error("three steps");
  const forced = planSteps(definition({ steps: [a, { ...b, force: true }, c] }));
  expect(cachedSteps(forced, () => true)).toBe(1);
  expect(cachedSteps(planSteps(definition({ force: true })), () => true)).toBe(0);
});

test.each([
  ["ubuntu", "ubuntu:latest", "docker.io"],
  ["library/ubuntu:22.04", "ubuntu:22.04", "docker.io"],
  ["docker.io/library/ubuntu", "ubuntu:latest", "docker.io"],
  ["me/app:1", "me/app:1", "docker.io"],
  ["library/me/app:1", "library/me/app:1", "docker.io"],
  ["ghcr.io/me/app", "ghcr.io/me/app:latest", "ghcr.io"],
  ["localhost:5000/a/b:c", "localhost:5000/a/b:c", "localhost:5000"],
  ["registry:5000/a", "registry:5000/a:latest", "registry:5000"],
  [`a@sha256:${"0".repeat(64)}`, `a@sha256:${"0".repeat(64)}`, "docker.io"],
])("the image %s is %s", (text, name, registry) => {
  expect(parseImageName(text)).toEqual({ name, registry });
});

test.each([
  "",
  "UPPER",
  "a b",
  "a/",
  "-a",
  "a:b:c",
  "http://a/b",
  "a@sha256:0",
  "svc/build:x",
  "svc/snapshot:x",
  "svc/layer:x",
  "docker.io/other.example/app",
  "docker.io/localhost/app",
  "-registry.example/app",
])("the image '%s' is refused", (text) => {
  expect(() => parseImageName(text)).toThrow();
});

test.each([
  [
    "ghcr.io/Me/App:V1",
    "'ghcr.io/Me/App:V1' is not the name of an image, which has no capital letters: write 'ghcr.io/me/app:V1'",
  ],
  ["Ubuntu", "'Ubuntu' is not the name of an image, which has no capital letters: write 'ubuntu'"],
  [
    "https://ghcr.io/me/app",
    "'https://ghcr.io/me/app' is not the name of an image: leave out what is before 'ghcr.io/me/app'",
  ],
  ["docker://alpine:3", "'docker://alpine:3' is not the name of an image: leave out what is before 'alpine:3'"],
  ["App/", "'App/' is not the name of an image"],
])("the refusal of the image %s names the way out", (text, message) => {
  expect(() => parseImageName(text)).toThrow(new AppError("bad_request", message));
});

test("names of the base image and image patterns of the settings are matched", () => {
  expect(["base", "e2bdev/base", "e2bdev/base:latest", "base:1"].map(isBaseName)).toEqual([true, true, true, false]);
  expect(matchesAny("svc/*, a.b:1", "svc/test:latest")).toBe(true);
  expect(matchesAny("svc/*, a.b:1", "axb:1")).toBe(false);
  expect(matchesAny("", "x")).toBe(false);
  expect(matchesAny("*", "x")).toBe(true);
  const interpreter = { image: "svc/code-interpreter:latest", template: "code-interpreter-v1" };
  expect(["e2bdev/code-interpreter", "e2bdev/code-interpreter:latest", "svc/code-interpreter"].map(starterOf)).toEqual([
    interpreter,
    interpreter,
    interpreter,
  ]);
  const desktop = { image: "svc/starter/desktop:latest", template: "desktop" };
  expect(["svc/starter/desktop", "svc/starter/desktop:latest"].map(starterOf)).toEqual([desktop, desktop]);
  expect(["code-interpreter", "svc/starter/desktop:1", "svc/starter/../base"].map(starterOf)).toEqual(Array(3));
});
