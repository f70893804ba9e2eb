import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  isBaseName,
  isInterpreterName,
  matchesAny,
  parseImageName,
} from "../../../../agent/builds/images/image-name.ts";
import { cachedSteps, type Definition, planSteps } from "../../../../agent/builds/images/layer-key.ts";
import { contextAfter, contextOf, resolveStep, type StepContext } from "../../../../agent/builds/steps/context.ts";
import { substitute } from "../../../../agent/builds/steps/substitute.ts";
import type { BuildStep } from "../../../../shared/agent-api/build-shapes.ts";

const common = { number: 1, force: false };
const env = (...variables: [string, string][]): BuildStep => ({ ...common, type: "ENV", variables });
const run = (command: string): BuildStep => ({ ...common, type: "RUN", command });
const after = (context: StepContext, ...steps: BuildStep[]) =>
  steps.reduce((before, step) => contextAfter(resolveStep(step, before), before), context);
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
])("ENV with %s sets the expected value", (_name, value, expected) => {
  expect(after(start, env(["BASE", "/opt"], ["X", value])).envs["X"]).toBe(expected);
});

test("a substituted value is not substituted again", () => {
  expect(after(start, env(["A", "\\$PATH"], ["B", "$A"])).envs["B"]).toBe("$PATH");
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
  ["app:staff", "app"],
  ["1000", "1000"],
])("USER %s is %s", (user, expected) => {
  expect(after(start, { ...common, type: "USER", user }).user).toBe(expected);
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

test("names of the base image and image patterns of the settings are matched", () => {
  expect(["base", "e2bdev/base", "e2bdev/base:latest", "base:1"].map(isBaseName)).toEqual([true, true, true, false]);
  expect(matchesAny("svc/*, a.b:1", "svc/test:latest")).toBe(true);
  expect(matchesAny("svc/*, a.b:1", "axb:1")).toBe(false);
  expect(matchesAny("", "x")).toBe(false);
  expect(matchesAny("*", "x")).toBe(true);
  const names = [
    "e2bdev/code-interpreter",
    "e2bdev/code-interpreter:latest",
    "svc/code-interpreter",
    "code-interpreter",
  ];
  expect(names.map(isInterpreterName)).toEqual([true, true, true, false]);
});
