/** Images of builds, and programs in their containers, on the machine in memory. */

import { buffer } from "node:stream/consumers";
import { type ExitStatus, type Processes, RpcError } from "../../../agent/builds/steps/processes.ts";
import type { Containers, FoundImage } from "../../../agent/containers/containers.ts";
import { untarred } from "../images/untarred.ts";

type BuildImages = Pick<
  Containers,
  "image" | "pull" | "load" | "save" | "tag" | "untag" | "commitLayer" | "buildImages"
>;

export interface FakeImage extends Omit<FoundImage, "names"> {
  /** The programs that ran in the containers from which the image was made, oldest first. */
  readonly history: readonly string[];
}

export interface FakeBuilds {
  readonly images: BuildImages;
  readonly processes: Processes;
  /** The images by name. */
  readonly named: Map<string, FakeImage>;
  /** The images in the registry. */
  readonly registry: Map<string, FakeImage>;
}

interface Part {
  readonly step: (name: string) => Promise<void>;
  readonly imageOf: (containerId: string) => string;
  /** Returns the container that answers at the address. */
  readonly at: (address: string) => string;
  /** Returns the image names that containers use. */
  readonly inUse: () => readonly string[];
}

export function fakeImage(id: string, more: Partial<FakeImage> = {}): FakeImage {
  return {
    id,
    env: ["PATH=/usr/bin"],
    labels: {},
    volumes: [],
    triggers: [],
    shell: [],
    bytes: 1_000,
    history: [],
    ...more,
  };
}

export function fakeBuilds({ step, imageOf, at, inUse }: Part): FakeBuilds {
  const named = new Map([["svc/base:latest", fakeImage("sha256:base", { labels: { "svc.image": "base" } })]]);
  const registry = new Map<string, FakeImage>();
  /** The programs that ran in a container since it was made. */
  const ran = new Map<string, string[]>();
  const state = { count: 0 };

  const images: BuildImages = {
    image(name) {
      const found = named.get(name);
      return Promise.resolve(found === undefined ? undefined : { ...found, names: [name] });
    },
    async pull(name) {
      await step("pull");
      const found = registry.get(name);
      if (found === undefined) throw new Error("no such image");
      named.set(name, found);
    },
    async load(archive) {
      await step("load");
      const about = (await untarred(archive)).get("manifest.json");
      const [image] = JSON.parse(String(about)) as { RepoTags: [string] }[];
      named.set(image?.RepoTags[0] ?? "", fakeImage("sha256:loaded"));
    },
    save: () => Promise.reject(new Error("nothing is saved here")),
    async tag(image, name) {
      await step("tag");
      const found = named.get(image) ?? [...named.values()].find(({ id }) => id === image);
      if (found === undefined) throw new Error("no such image");
      named.set(name, found);
    },
    async untag(name) {
      await step("untag");
      if (inUse().includes(name)) return false;
      named.delete(name);
      return true;
    },
    async commitLayer(id, image) {
      await step("commit layer");
      const base = named.get(imageOf(id)) ?? fakeImage("none");
      const history = [...base.history, ...(ran.get(id) ?? [])];
      const labels = { ...base.labels, "svc.node": "node-1" };
      named.set(image, { ...base, labels, id: `sha256:${++state.count}`, bytes: base.bytes + 100, history });
    },
    buildImages: () => Promise.resolve([...named.keys()].filter((name) => /^svc\/(build|from|layer):/.test(name))),
  };

  const processes: Processes = {
    async start({ address }, { cmd, args, user }, { onOutput, signal }) {
      await step("process");
      const id = at(address);
      if (user === "nobody-here") throw new RpcError("unauthenticated", `invalid username: '${user}'`);
      // An act of `steps.js`, with the Node of the runtime. It refuses an unknown user as envd does.
      const act = cmd.endsWith("/loader") ? args.at(-2) : undefined;
      if (act !== undefined && (args.at(-1) ?? "").includes('"nobody-here"')) {
        onOutput("stderr", Buffer.from("invalid username: 'nobody-here'\n"));
        return { pid: 2, ended: Promise.resolve({ exitCode: 1, status: "exit status 1" }) };
      }
      const text = cmd === "/bin/sh" || act !== undefined ? "script" : (args.at(-1) ?? "");
      ran.set(id, [...(ran.get(id) ?? []), text]);
      onOutput("stdout", Buffer.from(`ran ${text}\n`));
      const code = Number(/^exit (\d+)$/.exec(text)?.[1] ?? 0);
      const ended: ExitStatus = { exitCode: code, status: `exit status ${code}` };
      if (text !== "serve" && text !== "hang") return { pid: 2, ended: Promise.resolve(ended) };
      return {
        pid: 2,
        ended: new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
        }),
      };
    },
    async upload({ address }, _path, content) {
      await step("upload");
      const bytes = await buffer(content);
      const id = at(address);
      ran.set(id, [...(ran.get(id) ?? []), bytes.length > 0 ? "files" : "nothing"]);
    },
  };
  return { images, processes, named, registry };
}
