/**
 * Templates of images of every kind, uploaded or pulled from a registry: the agent completes them, or refuses them for their
 * content.
 */

import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { BuildBody, RegistryAccess } from "../../../shared/agent-api/build-shapes.ts";
import {
  bodyOf,
  buildsOn,
  type Finished,
  made,
  messages,
  result,
  run,
  SLOW,
} from "../../support/agent/agent-builds.ts";
import { containers, GATEWAY, NODE_ID, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { debianRegistry } from "../../support/images/debian-registry.ts";
import { registryWith } from "../../support/images/registry.ts";
import { archiveOf, type Layout, layoutOf, savedImage } from "../../support/images/saved-image.ts";
import { tarOf } from "../../support/images/tar.ts";
import { run as execute } from "../../support/platform/programs.ts";
import { command } from "../../support/sandbox/envd-commands.ts";

const docker = (args: readonly string[]) => execute("docker", args);

let agent: RealAgent;
let image: string;
beforeAll(async () => {
  agent = await realAgent({ SVC_BUILD_LOCAL_IMAGES: "*" });
  image = `svc/test-elsewhere:${randomUUID().slice(0, 8)}`;
  const container = image.replaceAll(/\W/g, "-");
  const text = "echo from-elsewhere > /note";
  await docker(["run", "--name", container, "--network=none", "svc/test-busybox", "/bin/sh", "-c", text]);
  await docker(["commit", "--change", "LABEL svc.image=made", container, image]);
  await docker(["rm", container]);
});
afterAll(async () => {
  await docker(["rmi", "-f", image]);
  await agent.close();
});

const { built, finished, start } = buildsOn(() => agent);

interface Built extends Finished {
  readonly text: string;
}

/** Builds a template of its own, so that no layer comes from another build's cache. */
async function builtFrom(from: BuildBody["from"], line = "cat /note"): Promise<Built> {
  const buildId = await start(bodyOf("", [run(line)], { templateId: randomUUID(), from, limitMs: 200_000 }));
  onTestFinished(() => agent.call.deleteBuild({ params: { buildId } }));
  const done = await finished(buildId);
  return { ...done, text: messages(done).join("\n") };
}

const refusal = (text: string) => ({ message: expect.stringContaining(text) as string, step: "base" });

/** Lists the image names that only builds under way may have, also those of another set of tests beside this one. */
async function passing(): Promise<string[]> {
  const names = await docker(["images", "--format", "{{.Repository}}:{{.Tag}}"]);
  return names.split("\n").filter((name) => name.startsWith(`svc/from:${NODE_ID}`) || name.startsWith("127.0.0.1:"));
}

let uploads = 0;
async function uploaded(layout: Layout): Promise<BuildBody["from"]> {
  const filesHash = (++uploads).toString(16).padStart(64, "0");
  agent.files.set(filesHash, await archiveOf(layout));
  return { is: "archive", filesHash };
}

test("an uploaded OCI layout is an image like others, and is gone after the build", async () => {
  const saved = await savedImage(image);
  // The Docker daemon still has the image's layers, and would take them in place of the uploaded ones.
  const claiming = layoutOf({ ...saved, layers: [...saved.layers.slice(0, -1), tarOf({ a: "b" })] });
  expect((await builtFrom(await uploaded(claiming))).state.reason).toMatchObject(refusal("other layers"));
  const config = Buffer.from(JSON.stringify({ ...(JSON.parse(saved.config.toString("utf8")) as object), created: 5 }));
  expect((await builtFrom(await uploaded(layoutOf({ ...saved, config })))).state.reason).toMatchObject(
    refusal('its configuration has a time that is not in RFC 3339 format; set "created" to a time'),
  );
  const missing = layoutOf(saved);
  missing.files.delete([...missing.files.keys()].find((name) => name.startsWith("blobs/")) ?? "");
  expect((await builtFrom(await uploaded(missing))).state.reason).toMatchObject(refusal("lacks a part of the image"));

  const { buildId, state, text } = await builtFrom(await uploaded(layoutOf(saved)));
  expect(text).toContain("[builder 1/1] [stdout]: from-elsewhere");
  const build = { templateId: "t1", buildId, image: state.result?.image ?? text };
  const { address, executionId } = await agent.start({ build });
  onTestFinished(() => agent.stop(executionId));
  expect((await command(address, "cat /note", { user: "user" })).output).toBe("from-elsewhere");
  await expect.poll(passing, SLOW).toEqual([]);
});

test("a step reaches no more than a sandbox, and has its limits", async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  // The server is reachable at every address of the machine.
  await new Promise((resolve) => connect(port, GATEWAY, () => resolve(undefined)));
  await expect.poll(() => connections).toBe(1);
  const own = Object.values(networkInterfaces()).flatMap((some) => some ?? []);
  const hosts = own.filter(({ family, internal }) => family === "IPv4" && !internal).map(({ address }) => address);
  const addresses = [...new Set([GATEWAY, "169.254.169.254", "127.0.0.1", ...hosts])].slice(0, 8);
  const one = (address: string) =>
    `(timeout 3 bash -c 'exec 3<>/dev/tcp/${address}/${port}' 2> /dev/null && echo reached ${address}) &`;
  const step = `${addresses.map(one).join("\n")}\nwait; echo tried; head -c 600M /dev/zero | tail -c 600M | wc -c`;
  const { text } = await builtFrom({ is: "image", image: "base" }, step);
  expect(text).toContain("[stdout]: tried");
  expect(text).not.toContain("[stdout]: reached");
  expect(connections).toBe(1);
  expect(text).not.toContain(`[stdout]: ${600 * 1024 ** 2}`);
});

test("an image of a registry with a password is pulled with it, and without it refused with a reason", async () => {
  const registry = await debianRegistry();
  onTestFinished(() => registry.close());
  const { username, password } = registry;
  const name = await registry.push(image, "team/image:1");
  const from = (right: boolean): BuildBody["from"] => {
    const access = { type: "registry" as const, username, password: right ? password : `not-${password}` };
    return { is: "image", image: name, access };
  };
  expect((await builtFrom({ is: "image", image: name })).state.reason).toMatchObject(
    refusal("its registry requires credentials, or refused those given"),
  );
  const wrong = await builtFrom(from(false));
  expect(wrong.state.reason).toMatchObject(refusal(`the image ${name} cannot be pulled`));
  expect(wrong.state.reason?.message).toMatch(/refused those given|shows it only with credentials/);
  const done = await builtFrom(from(true));
  expect(done.text).toContain("[builder 1/1] [stdout]: from-elsewhere");
  // A build without credentials is refused, also after the pull. No other test has images on this node now.
  expect((await builtFrom({ is: "image", image: name })).state.reason).toMatchObject(
    refusal("its registry requires credentials, or refused those given"),
  );
  await expect.poll(passing, SLOW).toEqual([]);
  for (const each of [wrong, done]) expect(JSON.stringify(each)).not.toContain(password);
  // The bytes of the agent's own state do not contain the password.
  const directory = join(agent.snapshots, "..");
  const databases = (await readdir(directory)).filter((file) => file.includes(".db"));
  expect(databases).not.toEqual([]);
  for (const file of databases) expect((await readFile(join(directory, file))).includes(password)).toBe(false);
});

test("a Debian image without the user and without packages that the registry offers is completed", async () => {
  const image = await made(
    "debian",
    "svc/base:latest",
    "userdel -r user; rm -f /usr/bin/ss /bin/ss /etc/sudoers.d/*; useradd -u 1000 other; printf 'PATH=/usr/bin:/bin\\n' > /etc/profile",
  );
  const done = await built(image, [
    run(
      "id -un; id -u; sudo -n id -u; echo $PATH; ls -A ~; REQUESTS_CA_BUNDLE=/kept sudo -n printenv REQUESTS_CA_BUNDLE",
    ),
  ]);
  expect(result(done).settings).toMatchObject({ user: "user", workdir: "/home/user" });
  const said = messages(done)
    .filter((line) => line.startsWith("[builder 1/1] [stdout]"))
    .join("\n");
  expect(said).toMatch(/user[^]*1001[^]*: 0\n[^]*\/opt\/own:\/usr\/bin:\/bin[^]*\.bashrc[^]*: \/kept/);
  expect(messages(done).join("\n")).toMatch(/Not installed:.*ss/);
  await agent.call.deleteBuild({ params: { buildId: done.buildId } });
});

test("a build from an unusable image fails with the reason", async () => {
  const other = await made("other", "svc/test-busybox", "printf 'ID=nixos\\n' > /etc/os-release");
  expect((await built(other, [])).state.reason).toEqual({
    message: expect.stringContaining("ID='nixos' is not supported") as string,
    step: "base",
  });
  const bare = await made("bare", "svc/test-busybox", "rm /bin/sh");
  expect((await built(bare, [])).state.reason).toEqual({
    message: "the image cannot be used: it has no shell (/bin/sh)",
    step: "base",
  });
  await expect.poll(containers, SLOW).toEqual([]);
});

test("an image of a private registry needs its credentials each time, and is not left for others", async () => {
  const own = await made("pulled", "svc/test-busybox", "echo from-the-registry > /note");
  const registry = await registryWith(own);
  onTestFinished(() => registry.close());
  const { username, password, image } = registry;
  const from = (access?: RegistryAccess): Partial<BuildBody> => ({
    from: { is: "image", image, ...(access === undefined ? {} : { access }) },
  });
  const right: RegistryAccess = { type: "registry", username, password };
  const refused = async (access?: RegistryAccess) => (await built("", [], from(access))).state.reason;
  expect(await refused()).toMatchObject({
    message: expect.stringContaining("cannot be pulled") as string,
    step: "base",
  });
  expect(await refused({ ...right, password: "wrong" })).toMatchObject({ step: "base" });
  const done = await built("", [run("cat /note")], from(right));
  expect(result(done).image).toBe(`svc/build:${done.buildId}`);
  expect(messages(done)).toContain("[builder 1/1] [stdout]: from-the-registry");
  expect(messages(done).join("\n")).toMatch(/\[base\] Pulling from/);
  expect(JSON.stringify(done)).not.toContain(password);
  expect(await refused()).toMatchObject({ step: "base" });
  const again = await built("", [run("cat /note")], from(right));
  expect(messages(again)).toContain("CACHED [builder 1/1] RUN cat /note");
  const names = await docker(["images", "--format", "{{.Repository}}:{{.Tag}}"]);
  expect(
    names.split("\n").filter((name) => name.includes("test/image") || name.startsWith(`svc/from:${NODE_ID}`)),
  ).toEqual([]);
  for (const { buildId } of [done, again]) await agent.call.deleteBuild({ params: { buildId } });
});

test("a build from an image that no registry has fails with one sentence, not with Docker's text", async () => {
  const done = await built("localhost:9/not/there:1", []);
  expect(done.state.reason).toMatchObject({
    message: expect.stringContaining(
      "localhost:9/not/there:1 cannot be pulled: its registry does not answer",
    ) as string,
    step: "base",
  });
  expect(done.state.reason?.message).not.toMatch(/dial tcp|127\.0\.0\.1|\[::1\]/);
});
