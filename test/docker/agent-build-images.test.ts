/** Templates of images that come from elsewhere: uploaded ones, and those of a registry as Debian packages it. */

import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { BuildBody, BuildState } from "../../shared/agent-api/build-shapes.ts";
import { GATEWAY, NODE_ID, RESOURCES, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { debianRegistry } from "../support/images/debian-registry.ts";
import { archiveOf, type Layout, layoutOf, savedImage } from "../support/images/saved-image.ts";
import { tarOf } from "../support/images/tar.ts";
import { run } from "../support/platform/programs.ts";
import { command } from "../support/sandbox/envd-commands.ts";

const SLOW = { timeout: 60_000, interval: 100 };

let agent: RealAgent;
let image: string;
beforeAll(async () => {
  agent = await realAgent({ SVC_BUILD_LOCAL_IMAGES: "*" });
  image = `svc/test-elsewhere:${randomUUID().slice(0, 8)}`;
  const container = image.replaceAll(/\W/g, "-");
  const text = "echo from-elsewhere > /note";
  await run("docker", ["run", "--name", container, "--network=none", "svc/test-busybox", "/bin/sh", "-c", text]);
  await run("docker", ["commit", "--change", "LABEL svc.image=made", container, image]);
  await run("docker", ["rm", container]);
});
afterAll(async () => {
  await run("docker", ["rmi", "-f", image]);
  await agent.close();
});

interface Built {
  readonly buildId: string;
  readonly state: BuildState;
  readonly text: string;
}

async function built(from: BuildBody["from"], line = "cat /note"): Promise<Built> {
  const buildId = randomUUID();
  const params = { buildId };
  const steps = [{ type: "RUN" as const, number: 1, force: false, command: line }];
  // A template of its own: nothing is cached from another build.
  const body = { templateId: buildId, resources: RESOURCES, from, steps, force: false, limitMs: 100_000 };
  await agent.call.startBuild({ params, body });
  onTestFinished(() => agent.call.deleteBuild({ params }));
  const look = () => agent.call.buildState({ params, query: { offset: 0, limit: 1_000 } });
  await expect.poll(async () => (await look()).status, SLOW).not.toBe("building");
  const state = await look();
  return { buildId, state, text: state.entries.map(({ message }) => message).join("\n") };
}

const refused = (text: string) => ({ message: expect.stringContaining(text) as string, step: "base" });

/** Names of images that only builds under way may have. */
async function passing(): Promise<string[]> {
  const names = await run("docker", ["images", "--format", "{{.Repository}}:{{.Tag}}"]);
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
  // The engine has its layers still, and would take them instead of these.
  const claiming = layoutOf({ ...saved, layers: [...saved.layers.slice(0, -1), tarOf({ a: "b" })] });
  expect((await built(await uploaded(claiming))).state.reason).toMatchObject(refused("other layers"));
  const config = Buffer.from(JSON.stringify({ ...(JSON.parse(saved.config.toString("utf8")) as object), created: 5 }));
  expect((await built(await uploaded(layoutOf({ ...saved, config })))).state.reason).toMatchObject(
    refused('its configuration has a time that is not written as RFC 3339 has it; set "created" to a time'),
  );
  const missing = layoutOf(saved);
  missing.files.delete([...missing.files.keys()].find((name) => name.startsWith("blobs/")) ?? "");
  expect((await built(await uploaded(missing))).state.reason).toMatchObject(refused("lacks a part of the image"));

  const { buildId, state, text } = await built(await uploaded(layoutOf(saved)));
  expect(text).toContain("[builder 1/1] [stdout]: from-elsewhere");
  const build = { templateId: "t1", buildId, image: state.result?.image ?? text };
  const { address, executionId } = await agent.start({ build });
  onTestFinished(() => agent.stop(executionId));
  expect((await command(address, "cat /note", { user: "user" })).output).toBe("from-elsewhere");
  expect(await passing()).toEqual([]);
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
  // It is there, at every address of the machine.
  await new Promise((resolve) => connect(port, GATEWAY, () => resolve(undefined)));
  await expect.poll(() => connections).toBe(1);
  const own = Object.values(networkInterfaces()).flatMap((some) => some ?? []);
  const hosts = own.filter(({ family, internal }) => family === "IPv4" && !internal).map(({ address }) => address);
  const addresses = [...new Set([GATEWAY, "169.254.169.254", "127.0.0.1", ...hosts])].slice(0, 8);
  const one = (address: string) =>
    `(timeout 3 bash -c 'exec 3<>/dev/tcp/${address}/${port}' 2> /dev/null && echo reached ${address}) &`;
  const step = `${addresses.map(one).join("\n")}\nwait; echo tried; head -c 600M /dev/zero | tail -c 600M | wc -c`;
  const { text } = await built({ is: "image", image: "base" }, step);
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
  expect((await built({ is: "image", image: name })).state.reason).toMatchObject(
    refused("refused the credentials, or wants some"),
  );
  const wrong = await built(from(false));
  expect(wrong.state.reason).toMatchObject(refused(`the image ${name} cannot be pulled`));
  expect(wrong.state.reason?.message).toMatch(/refused the credentials|shows it only with credentials/);
  const done = await built(from(true));
  expect(done.text).toContain("[builder 1/1] [stdout]: from-elsewhere");
  // No other test has images here now.
  expect((await built({ is: "image", image: name })).state.reason).toMatchObject(
    refused("refused the credentials, or wants some"),
  );
  expect(await passing()).toEqual([]);
  for (const { state } of [wrong, done]) expect(JSON.stringify(state)).not.toContain(password);
  // The agent's own state, by bytes.
  const directory = join(agent.snapshots, "..");
  const databases = (await readdir(directory)).filter((file) => file.includes(".db"));
  expect(databases).not.toEqual([]);
  for (const file of databases) expect((await readFile(join(directory, file))).includes(password)).toBe(false);
});
