/** Images of snapshots on Docker. */

import type Docker from "dockerode";
import type { Containers } from "./containers.ts";
import { orUndefined } from "./docker-errors.ts";

/** What containers on disks of their own need besides. */
export interface ImageNames {
  /** Gives the image that a container was made of one more name. */
  tagImageOf(containerId: string, name: string): Promise<void>;
  /** All tags of a repository's images. */
  tagsOf(repository: string): Promise<string[]>;
}

type DockerImages = Pick<
  Containers,
  "commit" | "layers" | "layerDirectories" | "flatten" | "removeImage" | "snapshotImages"
>;

const SNAPSHOT = "svc.snapshot";

/** `unlimited` calls Docker without a time limit: an export takes as long as the image is large. */
export function dockerImages(docker: Docker, unlimited: Docker, nodeId: string): DockerImages & ImageNames {
  return {
    async commit(id, image, snapshotId) {
      const [repo, tag] = image.split(":");
      // Images must not contain the source's secret; a container made of the image gets its own.
      const changes = [`LABEL svc.node=${nodeId}`, `LABEL ${SNAPSHOT}=${snapshotId}`, "ENV SVC_ENVD_CONTROL="];
      await docker.getContainer(id).commit({ repo, tag, pause: false, changes: changes.join("\n") });
    },

    async tagImageOf(containerId, name) {
      const { Image } = await docker.getContainer(containerId).inspect();
      const [repo = "", tag = ""] = name.split(":");
      await docker.getImage(Image).tag({ repo, tag });
    },

    async tagsOf(repository) {
      const found = await docker.listImages({ filters: { reference: [repository] } });
      const names = found.flatMap(({ RepoTags }) => RepoTags ?? []);
      return names.filter((name) => name.startsWith(`${repository}:`)).map((name) => name.slice(repository.length + 1));
    },

    async layers(image) {
      const { RootFS } = await docker.getImage(image).inspect();
      return RootFS.Layers?.length ?? 0;
    },

    async layerDirectories(image) {
      const { Data } = (await docker.getImage(image).inspect()).GraphDriver as { Data?: Record<string, string> | null };
      return [Data?.["UpperDir"], ...(Data?.["LowerDir"]?.split(":") ?? [])].filter((one) => one !== undefined);
    },

    async flatten(image) {
      const { Id, Config } = await docker.getImage(image).inspect();
      const [repo = "", tag = ""] = image.split(":");
      const container = await docker.createContainer({
        Image: image,
        Labels: { "svc.node": nodeId },
        NetworkDisabled: true,
        Entrypoint: ["/none"],
      });
      try {
        const stream = await unlimited.getContainer(container.id).export();
        const done = await unlimited.importImage(stream, { repo, tag, changes: instructions(Config) });
        await drained(done);
      } finally {
        await container.remove({ force: true });
      }
      // No record names the old image; if it stays, garbage collection finds it by its label.
      await orUndefined(docker.getImage(Id).remove(), 404, 409);
    },

    async removeImage(image) {
      // 409: a container uses it.
      const outcome = await orUndefined(docker.getImage(image).remove({ noprune: false }), 404, 409);
      return outcome !== undefined || (await orUndefined(docker.getImage(image).inspect(), 404)) === undefined;
    },

    async snapshotImages() {
      const filters = { label: [`svc.node=${nodeId}`, SNAPSHOT] };
      const found = await docker.listImages({ filters });
      return (
        found
          .map(({ Id, Labels, Created, RepoTags }) => ({
            id: Id,
            names: RepoTags ?? [],
            snapshotId: Labels?.[SNAPSHOT] ?? "",
            createdAt: Created * 1_000,
          }))
          // Layers of builds that are based on a snapshot have the label without a value.
          .filter(({ snapshotId }) => snapshotId !== "")
      );
    },
  };
}

interface ImageConfig {
  readonly Env?: string[] | null;
  readonly Labels?: Record<string, string> | null;
  readonly User?: string;
  readonly WorkingDir?: string;
}

/** Restores the configuration, because an imported image does not have that of the exported one. */
function instructions({ Env, Labels, User, WorkingDir }: ImageConfig): string[] {
  const quoted = (text: string) => JSON.stringify(text).replaceAll("$", "\\$");
  return [
    ...(Env ?? []).map((pair) => {
      const [name = "", value = ""] = pair.split(/=(.*)/s);
      return `ENV ${name}=${quoted(value)}`;
    }),
    ...Object.entries(Labels ?? {}).map(([name, value]) => `LABEL ${quoted(name)}=${quoted(value)}`),
    ...(User === undefined || User === "" ? [] : [`USER ${User}`]),
    ...(WorkingDir === undefined || WorkingDir === "" ? [] : [`WORKDIR ${WorkingDir}`]),
  ];
}

async function drained(stream: NodeJS.ReadableStream): Promise<void> {
  let text = "";
  for await (const chunk of stream) text = (text + String(chunk)).slice(-4_096);
  if (text.includes('"error"')) throw new Error(`Docker could not import the image: ${text}`);
}
