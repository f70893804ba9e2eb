/** The published SDK builds templates against a cluster in one process: its requests, and its reading of the answers. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, Template } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readDockerfile } from "../../../../shared/dockerfile/dockerfile.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

let cluster: Cluster;
let folder: string;
beforeAll(async () => {
  cluster = await startCluster({ config: { buildPollMs: 20 } });
  folder = await mkdtemp(join(tmpdir(), "svc-template-"));
  await writeFile(join(folder, "hello.txt"), "hello");
});
afterAll(async () => {
  await cluster.stop();
  await rm(folder, { recursive: true, force: true });
});

const options = () => ({ apiKey: cluster.key, apiUrl: cluster.url, sandboxUrl: cluster.edgeUrl });

test("a template with every kind of step builds, logs and starts a sandbox", async () => {
  const template = Template({ fileContextPath: folder })
    .fromImage("debian:12")
    .copy("hello.txt", "/app/", { forceUpload: true, user: "root", mode: 0o755 })
    .setEnvs({ GREETING: 'it\'s "quoted" $HOME `id`\n' })
    .setWorkdir("/app")
    .setUser("root")
    .runCmd("cat hello.txt", { user: "user" })
    .setStartCmd("python3 -m http.server 8000", "sleep 1");
  const seen: string[] = [];
  const built = await Template.build(template, "sdk-app:v1", {
    ...options(),
    tags: ["latest"],
    cpuCount: 1,
    memoryMB: 512,
    onBuildLogs: ({ message }) => void seen.push(message),
  });
  expect(built).toMatchObject({ name: "sdk-app:v1", tags: ["v1", "latest"] });
  expect(seen.join("\n")).toContain("Uploaded 'hello.txt'");
  expect(seen.join("\n")).toContain("[builder 1/5] COPY");
  const build = cluster.agent.builds.get(built.buildId);
  expect(build?.body).toMatchObject({
    from: { is: "image", image: "debian:12" },
    resources: { cpuCount: 1, memoryMB: 512 },
    startCmd: "python3 -m http.server 8000",
    readyCmd: "sleep 1",
    steps: [
      { type: "COPY", source: "hello.txt", destination: "/app/", user: "root", mode: "0755", number: 1 },
      { type: "ENV", variables: [["GREETING", 'it\'s "quoted" $HOME `id`\n']] },
      { type: "WORKDIR", path: "/app" },
      { type: "USER", user: "root" },
      { type: "RUN", command: "cat hello.txt", user: "user", number: 5 },
    ],
  });
  expect([...(build?.files.values() ?? [])].map((bytes) => bytes.subarray(0, 2).toString("hex"))).toEqual(["1f8b"]);
  const sandbox = await Sandbox.create("sdk-app:latest", options());
  expect(cluster.agent.starts.at(-1)?.body).toMatchObject({ defaultUser: "root", origin: { is: "snapshot" } });
  await sandbox.kill();
});

test("a second build of a Dockerfile keeps the template and skips files that are there already", async () => {
  const dockerfile = "FROM debian:12\nRUN echo hello\nCOPY hello.txt /hello.txt\nENV A=1\n";
  const template = () => Template({ fileContextPath: folder }).fromDockerfile(dockerfile);
  const first = await Template.build(template(), "sdk-docker", options());
  const seen: string[] = [];
  const second = await Template.build(template(), "sdk-docker", {
    ...options(),
    onBuildLogs: ({ message }) => void seen.push(message),
  });
  expect(second.templateId).toBe(first.templateId);
  expect(second.buildId).not.toBe(first.buildId);
  expect(seen.join("\n")).toContain("Skipping upload of 'hello.txt'");
});

const using = () => readFile(join(import.meta.dirname, "../../../../docs/using.md"), "utf8");

test.each([
  ["a quoted value of ENV", 'ENV A="a b" B=c', "a b", '| `ENV A="a b"`, '],
  ["a heredoc of RUN", "RUN <<EOT\necho one\necho two\nEOT", "echo one\necho two", "| `RUN <<EOT …` |"],
  ["RUN in exec form", 'RUN ["echo", "b c"]', "echo 'b c'", '| `RUN ["a", "b c"]` |'],
  ["a shell that SHELL names", 'SHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN true', "pipefail", "| `SHELL`, "],
  ["an ENTRYPOINT before a CMD", 'ENTRYPOINT ["serve"]\nCMD ["--port"]', "serve --port", "| `CMD`, `ENTRYPOINT` in "],
  ["the mode of a COPY", "COPY --chmod=0711 a /b", "0711", "| `COPY --chmod=`, "],
])(
  "%s is lost by the SDK's reader of Dockerfiles and not by the platform's, and the docs list it",
  async (_name, text, kept, listed) => {
    const sdk = JSON.parse(await Template.toJSON(Template().fromDockerfile(`FROM base\n${text}`), false)) as {
      readonly startCmd?: string;
      readonly steps: readonly { readonly args: readonly string[] }[];
    };
    const own = readDockerfile(`FROM base\n${text}`);
    const textsOf = (command: string | undefined, steps: typeof sdk.steps) => [
      command ?? "",
      ...steps.flatMap(({ args }) => args),
    ];
    const holds = (texts: readonly string[]) => texts.some((one) => one.includes(kept));
    expect([holds(textsOf(sdk.startCmd, sdk.steps)), holds(textsOf(own.startCommand, own.steps))]).toEqual([
      false,
      true,
    ]);
    expect(await using()).toContain(`\n${listed}`);
  },
);

test("a second FROM is refused by the SDK's reader of Dockerfiles, and a COPY from it by the platform's; the docs list it", async () => {
  const text = "FROM base AS build\nFROM base";
  expect(() => Template().fromDockerfile(text)).toThrow("Multi-stage Dockerfiles are not supported");
  expect(readDockerfile(text).from).toBe("base");
  expect(() => readDockerfile(`${text}\nCOPY --from=build /a /b`)).toThrow("line 3: --from is not supported");
  expect(await using()).toContain("\n| several `FROM` | refused by the SDK |");
});

test("a build in the background reads as building at first", async () => {
  let finish: () => void = () => undefined;
  cluster.agent.onBuild = (build) => {
    finish = () => build.ready();
  };
  const template = Template().fromTemplate("base").runCmd("true").skipCache().runCmd("false");
  const building = await Template.buildInBackground(template, "sdk-background", options());
  const look = () => Template.getBuildStatus(building, options());
  expect((await look()).status).toBe("building");
  await expect.poll(() => cluster.agent.builds.has(building.buildId)).toBe(true);
  expect(cluster.agent.builds.get(building.buildId)?.body.steps).toMatchObject([{ force: false }, { force: true }]);
  finish();
  await expect.poll(async () => (await look()).status).toBe("ready");
  cluster.agent.onBuild = (_build, run) => run();
});

test("a step that fails is a BuildError that points to the line of that step", async () => {
  cluster.agent.onBuild = (build) => build.fail("failed to run command 'false': exit status 1", "2");
  const template = Template().fromImage("debian:12").runCmd("true").runCmd("false");
  const failing = Template.build(template, "sdk-failing", options());
  await expect(failing).rejects.toThrow("failed to run command 'false'");
  await expect(failing).rejects.toMatchObject({
    name: "BuildError",
    stack: expect.stringContaining(import.meta.filename) as string,
  });
  cluster.agent.onBuild = (_build, run) => run();
});

test("Template.exists, assignTags, getTags and removeTags work, and wrong tags, sizes and names are refused", async () => {
  const { templateId, buildId } = await Template.build(Template().fromBaseImage(), "sdk-tags", options());
  expect(await Template.exists("sdk-tags", options())).toBe(true);
  expect(await Template.exists("base", options())).toBe(true);
  expect(await Template.exists("sdk-nosuch", options())).toBe(false);
  expect(await Template.assignTags("sdk-tags", ["production", "latest"], options())).toEqual({
    buildId,
    tags: ["production", "latest"],
  });
  expect((await Template.getTags(templateId, options())).map(({ tag }) => tag).sort()).toEqual([
    "default",
    "latest",
    "production",
  ]);
  await Template.removeTags("sdk-tags", "production", options());
  await expect(Template.removeTags("sdk-tags", "production", options())).rejects.toThrow("404");
  await expect(Template.assignTags("sdk-tags", ":invalid-tag", options())).rejects.toThrow("400");
  const many = Template.build(Template().fromBaseImage(), "sdk-tags", { ...options(), cpuCount: 99 });
  await expect(many).rejects.toThrow("CPU count must be at most 32");
  const named = Template.build(Template().fromBaseImage(), "somebody/sdk", options());
  await expect(named).rejects.toThrow("namespace 'somebody'");
});
