/** `svc gc`: what nothing needs any more, and its removal. */

import type { Reply } from "../../api/client.ts";
import type { Action } from "../../definition.ts";
import type { View } from "../../output/output.ts";
import { bytes } from "../../output/time.ts";

interface Garbage {
  readonly kind: "build" | "uploaded files" | "memory" | "image" | "cached layer" | "volume";
  readonly id: string;
  readonly node: string;
  readonly bytes: number | null;
  /** Who removes it, and when. */
  readonly removal: string;
}

const view: View<Garbage> = {
  name: ({ kind, id }) => `${kind}/${id}`,
  columns: [
    { title: "KIND", of: ({ kind }) => kind },
    { title: "ID", of: ({ id }) => id },
    { title: "NODE", of: ({ node }) => node },
    { title: "SIZE", of: ({ bytes: size }) => (size === null ? "" : bytes(size)) },
    { title: "REMOVAL", of: ({ removal }) => removal },
  ],
};

const BY_NODE = "by its node, when it is old enough";

export const collect: Action = async (context, _args, options) => {
  const api = await context.admin();
  const isDry = options.dryRun === true;
  const collected = await api.call("POST /admin/builds/collect", { body: { dryRun: isDry } });
  const { nodes } = await api.call("GET /admin/storage", {});
  for (const { nodeID, error } of nodes) {
    if (error !== null) context.out.note(`node ${nodeID} lists nothing: ${error}`);
  }
  await context.out.list(view, [...ofBuilds(collected), ...nodes.flatMap(ofNode)], options);
};

/** Pure. */
function ofBuilds({ dryRun, builds, files }: Reply<"POST /admin/builds/collect">): readonly Garbage[] {
  const removal = dryRun ? "by svc gc" : "removed";
  return [
    ...builds.map(
      ({ buildID, nodeID }): Garbage => ({ kind: "build", id: buildID, node: nodeID ?? "", bytes: null, removal }),
    ),
    ...(files.count === 0
      ? []
      : [{ kind: "uploaded files" as const, id: String(files.count), node: "", bytes: files.bytes, removal }]),
  ];
}

/** Pure. */
function ofNode({ nodeID, garbage, unknownVolumes }: Reply<"GET /admin/storage">["nodes"][number]): readonly Garbage[] {
  const on = { node: nodeID, removal: BY_NODE };
  return [
    ...(garbage?.memory ?? []).map(
      ({ snapshotID, bytes: size }): Garbage => ({ kind: "memory", id: snapshotID, bytes: size, ...on }),
    ),
    ...(garbage?.images ?? []).map(({ image }): Garbage => ({ kind: "image", id: image, bytes: null, ...on })),
    ...(garbage?.buildImages ?? []).map((image): Garbage => ({ kind: "image", id: image, bytes: null, ...on })),
    ...(garbage?.layers ?? []).map(
      ({ image, bytes: size }): Garbage => ({ kind: "cached layer", id: image, bytes: size, ...on }),
    ),
    ...unknownVolumes.map(
      ({ volumeID, usedBytes }): Garbage => ({
        kind: "volume",
        id: volumeID,
        node: nodeID,
        bytes: usedBytes,
        removal: "by an operator: docs/operating/backup.md",
      }),
    ),
  ];
}
