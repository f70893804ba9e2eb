/**
 * Templates that an agent on the real Docker daemon builds step by step, and the images from which they are made or which
 * they leave.
 */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { type Header, pack } from "tar-stream";
import { expect, onTestFinished } from "vitest";
import type { BuildBody, BuildLogEntry, BuildState, BuildStep } from "../../../shared/agent-api/build-shapes.ts";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { NODE_ID, RESOURCES, type RealAgent } from "./real-agent.ts";

const sh = promisify(execFile);

/** The time limit of a build or a removal, and the interval at which a test looks. */
export const SLOW = { timeout: 120_000, interval: 100 };

export interface Finished {
  readonly buildId: string;
  readonly state: BuildState;
  readonly log: readonly BuildLogEntry[];
  readonly ms: number;
}

type Given<T> = T extends BuildStep ? Omit<T, "number" | "force"> & { force?: boolean } : never;
export type Step = Given<BuildStep>;

export type Entries = readonly (Partial<Header> & { name: string; content?: string })[];

export function bodyOf(image: string, steps: readonly Step[], more: Partial<BuildBody> = {}): BuildBody {
  return {
    templateId: "t1",
    resources: RESOURCES,
    from: { is: "image", image },
    steps: steps.map((step, index) => ({ force: false, ...step, number: index + 1 })),
    force: false,
    limitMs: 240_000,
    ...more,
  };
}

export function result({ state, log }: Finished): NonNullable<BuildState["result"]> {
  if (state.result === undefined)
    throw new Error(`${JSON.stringify(state.reason)}\n${log.map(({ message }) => message).join("\n")}`);
  return state.result;
}

export const run = (text: string, user?: string): Step => ({
  type: "RUN",
  command: text,
  ...(user === undefined ? {} : { user }),
});
export const messages = ({ log }: Finished) => log.map(({ message }) => message);

export interface AgentBuilds {
  readonly start: (body: BuildBody) => Promise<string>;
  readonly finished: (buildId: string) => Promise<Finished>;
  /** Waits until the log has the text, while the build goes on. */
  readonly untilSaid: (buildId: string, text: string) => Promise<void>;
  /** Starts a build and waits until it is ready or has failed. */
  readonly built: (image: string, steps: readonly Step[], more?: Partial<BuildBody>) => Promise<Finished>;
  /** Starts a sandbox of the template as the orchestrator would. */
  readonly sandboxOf: (done: Finished, body?: { memory?: boolean }) => Promise<Started>;
  /** Makes a step that copies these entries of an archive. */
  readonly copy: (
    entries: Entries,
    source: string,
    destination: string,
    more?: { user?: string; mode?: string },
  ) => Promise<Step>;
}

export function buildsOn(agent: () => RealAgent): AgentBuilds {
  let files = 0;
  const builds: AgentBuilds = {
    async start(body) {
      const buildId = randomUUID();
      await agent().call.startBuild({ params: { buildId }, body });
      return buildId;
    },
    async finished(buildId) {
      const begun = performance.now();
      const log: BuildLogEntry[] = [];
      for (;;) {
        const query = { offset: log.length, limit: 1000 };
        const state = await agent().call.buildState({ params: { buildId }, query });
        log.push(...state.entries);
        if (state.status !== "building" && state.entries.length === 0)
          return { buildId, state, log, ms: performance.now() - begun };
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async untilSaid(buildId, text) {
      const query = { offset: 0, limit: 100 };
      const look = async () => JSON.stringify(await agent().call.buildState({ params: { buildId }, query }));
      await expect.poll(look, SLOW).toContain(text);
    },
    async built(image, steps, more = {}) {
      return builds.finished(await builds.start(bodyOf(image, steps, more)));
    },
    async sandboxOf(done, body = {}) {
      const { image, settings, snapshot } = result(done);
      const started = await agent().start({
        build: { templateId: "t1", buildId: done.buildId, image },
        envs: settings.envs,
        defaultUser: settings.user,
        defaultWorkdir: settings.workdir,
        ...(snapshot === undefined || body.memory === false
          ? {}
          : { origin: { is: "snapshot", snapshotId: snapshot.snapshotId, memory: true } }),
      });
      onTestFinished(() => agent().stop(started.executionId));
      return started;
    },
    async copy(entries, source, destination, more = {}) {
      const filesHash = (++files).toString(16).padStart(64, "0");
      agent().files.set(filesHash, await archived(entries));
      return { type: "COPY", source, destination, filesHash, ...more };
    },
  };
  return builds;
}

async function archived(entries: Entries): Promise<Buffer> {
  const made = pack();
  for (const { content, ...header } of entries) made.entry(header, content ?? "");
  made.finalize();
  return gzipSync(await buffer(made));
}

/** Lists the names of this node's images. */
export async function imageNames(): Promise<string[]> {
  const { stdout } = await sh("docker", [
    "images",
    "-a",
    "--filter",
    `label=svc.node=${NODE_ID}`,
    "--format",
    "{{.Repository}}:{{.Tag}}",
  ]);
  return stdout.split("\n").filter(Boolean);
}

/** Lists this node's layers that have no name. */
export async function dangling(): Promise<string[]> {
  const { stdout } = await sh("docker", [
    "images",
    "--filter",
    "dangling=true",
    "--filter",
    `label=svc.node=${NODE_ID}`,
    "-q",
  ]);
  return stdout.split("\n").filter(Boolean);
}

/** Makes an image on the Docker daemon from the busybox image or the base image by this command. */
export async function made(name: string, of: string, text: string): Promise<string> {
  const image = `svc/test-built:${name}${NODE_ID}`;
  const container = `svc-made-${NODE_ID}-${name}`;
  await sh("docker", ["rm", "-f", container]).catch(() => undefined);
  await sh("docker", ["run", "--name", container, "--network", "none", "--entrypoint", "/bin/sh", of, "-c", text]);
  await sh("docker", [
    "commit",
    "--change",
    "LABEL svc.image=made",
    "--change",
    "ENV PATH=/opt/own:/usr/bin:/bin",
    container,
    image,
  ]);
  await sh("docker", ["rm", "-f", container]);
  onTestFinished(() => void sh("docker", ["rmi", "-f", image]).catch(() => undefined));
  return image;
}
