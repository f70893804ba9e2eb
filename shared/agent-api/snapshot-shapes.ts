/** A checkpoint of a sandbox: the request, its result, and what a node has stored. */

import { type Static, Type } from "typebox";
import { closed, reported, SnapshotId, time } from "./shapes.ts";

export const TakeSnapshotBody = Type.Object(
  {
    snapshotId: SnapshotId,
    /** false: only the disk is stored. */
    memory: Type.Boolean(),
    /**
     * false: the snapshot lives for one call, as that of a fork, so nothing waits until it is on the disk. Nothing starts from it
     * after a restart of the host, which may have damaged its files. Default: true.
     */
    durable: Type.Optional(Type.Boolean()),
    /** Copies that will be started at once from a snapshot that lives for one call. Only to agents with `copiesAhead`. Default: 1. */
    copies: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    /** Of a pause. false: its container is not kept frozen, so that every resume comes from the disk. Default: true. */
    frozen: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type TakeSnapshotBody = Static<typeof TakeSnapshotBody>;

/** A snapshot that is durable: fsynced, with a manifest, under its final name. */
export const TakenSnapshot = Type.Object(
  {
    executionId: Type.String(),
    sandboxId: Type.String(),
    snapshotId: SnapshotId,
    /** Whether it has the memory. A node that cannot store memory refuses the request, so this is what was requested. */
    memory: Type.Boolean(),
    /** Image of a checkpoint's disk, for starts with origin `snapshot`; absent for a pause, whose disk is its container. */
    image: Type.Optional(Type.String()),
    memoryBytes: Type.Integer({ minimum: 0 }),
    diskBytes: Type.Integer({ minimum: 0 }),
    takenAt: time,
    /** Milliseconds that the parts took. Absent: an older agent, or a snapshot that was taken for an earlier request. */
    times: Type.Optional(Type.Record(Type.String(), Type.Number())),
  },
  closed,
);
export type TakenSnapshot = Static<typeof TakenSnapshot>;

const bytes = Type.Integer({ minimum: 0 });

/** What is beside its node: in the platform's blob store, on its way there, or why it is not. */
export const Beyond = Type.Union([
  Type.Object({ ref: Type.String({ pattern: "^[0-9a-f]{64}\\.[0-9]{1,9}$" }), bytes }, closed),
  Type.Object({ doneBytes: bytes, totalBytes: bytes }, closed),
  Type.Object({ failure: Type.String({ maxLength: 1_000 }) }, closed),
]);
export type Beyond = Static<typeof Beyond>;

/** A node that has what another one needs, and the ticket that opens that one offer. */
export const Peer = Type.Object(
  {
    nodeId: Type.String({ minLength: 1, maxLength: 64 }),
    /** Of its API. */
    url: Type.String({ maxLength: 512 }),
    ticket: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  },
  closed,
);
export type Peer = Static<typeof Peer>;

/** Asks a node to fetch a snapshot of another one. */
export const FetchSnapshotBody = Type.Object(
  {
    ref: Type.String({ pattern: "^[0-9a-f]{64}\\.[0-9]{1,9}$" }),
    /** The project that owns it. */
    projectId: Type.String({ maxLength: 64 }),
    /** The start that follows restores memory. */
    memory: Type.Boolean(),
    /** The node that offers it, and has named the reference. Absent: it is in the blob store. */
    peer: Type.Optional(Peer),
  },
  closed,
);
export type FetchSnapshotBody = Static<typeof FetchSnapshotBody>;

const Image = Type.String({ minLength: 1, maxLength: 512 });
/** Asks a node to offer an image of its Docker, by its name. `projectId`: for whom its blobs are named. */
export const OfferImageBody = Type.Object({ image: Image, projectId: Type.String({ maxLength: 64 }) }, closed);

/** Asks a node to fetch an image that another one offers, or that is in the blob store. */
export const FetchImageBody = Type.Object(
  {
    image: Image,
    ref: FetchSnapshotBody.properties.ref,
    /** For whom its blobs are named. */
    projectId: Type.String({ maxLength: 64 }),
    /** The node that offers it, and has named the reference. Absent: it is in the blob store. */
    peer: Type.Optional(Peer),
  },
  closed,
);
export type FetchImageBody = Static<typeof FetchImageBody>;

/** What a node has described for others. `ref` comes when all of it is described; until then it is asked for again. */
export const Offer = Type.Object(
  {
    ticket: Peer.properties.ticket,
    /** For whom its blobs are named. */
    projectId: Type.String({ maxLength: 64 }),
    ref: Type.Optional(Type.String({ pattern: "^[0-9a-f]{64}\\.[0-9]{1,9}$" })),
    doneBytes: bytes,
    totalBytes: bytes,
  },
  closed,
);
export type Offer = Static<typeof Offer>;

/** All references of the platform, as they were at a moment: what the blob store holds beside them is garbage. */
export const CollectBlobs = Type.Object(
  {
    /** Unix milliseconds: before the references were read. */
    at: time,
    live: Type.Array(
      Type.Object(
        { ref: Type.String({ pattern: "^[0-9a-f]{64}\\.[0-9]{1,9}$" }), projectId: Type.String({ maxLength: 64 }) },
        closed,
      ),
    ),
  },
  closed,
);
export type CollectBlobs = Static<typeof CollectBlobs>;

/** A snapshot on its way to a node. `here`: sandboxes can be started from it now. */
export const Arrival = Type.Object({ here: Type.Boolean(), doneBytes: bytes, totalBytes: bytes }, closed);
export type Arrival = Static<typeof Arrival>;

/** The image of a template's build on a node. */
export const HeldImage = Type.Object(
  {
    buildId: Type.String({ format: "uuid" }),
    /** Absent: another node built it, or this one has no blob store. */
    stored: Type.Optional(Beyond),
    /** It waits for the name of the project that owns it: an earlier version built it. */
    ownerless: Type.Optional(Type.Literal(true)),
    /** The memory of a template whose start command runs. Absent: it has none, or another node built it. */
    memory: Type.Optional(Type.Object({ snapshotId: SnapshotId, stored: Type.Optional(Beyond) }, closed)),
  },
  closed,
);
export type HeldImage = Static<typeof HeldImage>;

/** A snapshot on the node's disk. */
export const StoredSnapshot = Type.Object(
  {
    snapshotId: SnapshotId,
    /** `pause`: the only copy of the sandbox itself; `checkpoint`: a copy that new sandboxes start from. */
    kind: Type.Enum(["pause", "checkpoint"]),
    sandboxId: reported,
    /** The execution that it was taken from. */
    executionId: reported,
    memory: Type.Boolean(),
    memoryBytes: Type.Integer({ minimum: 0 }),
    diskBytes: Type.Integer({ minimum: 0 }),
    takenAt: time,
    /** Absent: it stays on the node, because the node has no blob store or does not store such ones. */
    stored: Type.Optional(Beyond),
  },
  closed,
);
export type StoredSnapshot = Static<typeof StoredSnapshot>;
