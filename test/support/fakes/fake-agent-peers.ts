/** What a fake agent answers about snapshots and images of other nodes: it notes what it is asked, and a test gives the answers. */

import type { agentApi } from "../../../shared/agent-api/routes.ts";
import type { Handlers } from "../../../shared/http/contract.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { FakeAgent } from "./fake-agent-shapes.ts";

type Peers = Pick<
  FakeAgent,
  | "snapshotChecks"
  | "onSnapshotCheck"
  | "fetches"
  | "onFetch"
  | "onOffer"
  | "onImageOffer"
  | "imageFetches"
  | "onImageFetch"
>;
type PeerHandlers = Pick<
  Handlers<typeof agentApi, unknown>,
  "checkSnapshot" | "cancelSnapshotCheck" | "fetchSnapshot" | "offerSnapshot" | "offerImage" | "fetchImage"
>;

/** A node that has nothing for others, and reads nothing from them. */
export function noPeers(): Peers {
  return {
    snapshotChecks: { asked: [], cancelled: [] },
    onSnapshotCheck: () => ({ state: "absent", doneBytes: 0, totalBytes: 0, parts: [] }),
    fetches: [],
    onFetch: () => {
      throw new AppError("unavailable", "this node has no blob store");
    },
    onImageOffer: () => {
      throw new AppError("not_found", "this node does not have the image");
    },
    imageFetches: [],
    onImageFetch: () => {
      throw new AppError("unavailable", "the other node does not answer");
    },
    onOffer: () => {
      throw new AppError("failed_precondition", "this snapshot stays on its node");
    },
  };
}

/** @param agentOf the agent, whose answers a test replaces */
export function peerHandlers(agentOf: () => Peers): PeerHandlers {
  return {
    checkSnapshot({ params, body }) {
      const asked = { ...params, ...body };
      agentOf().snapshotChecks.asked.push(asked);
      return agentOf().onSnapshotCheck(asked);
    },
    cancelSnapshotCheck: ({ params }) => void agentOf().snapshotChecks.cancelled.push(params.checkId),
    fetchSnapshot({ params, body }) {
      const asked = { ...params, ...body };
      agentOf().fetches.push(asked);
      return agentOf().onFetch(asked);
    },
    offerSnapshot: ({ params }) => agentOf().onOffer(params.snapshotId),
    offerImage: ({ body }) => agentOf().onImageOffer(body.image),
    fetchImage({ body }) {
      agentOf().imageFetches.push(body);
      return agentOf().onImageFetch(body);
    },
  };
}
