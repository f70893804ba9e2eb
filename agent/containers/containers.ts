/** What the agent needs of a container engine. Implemented on Docker by docker.ts, and by a fake in tests. */

import type { Readable } from "node:stream";
import type { BuildReference, Resources } from "../../shared/agent-api/routes.ts";
import type { DockerLimits, Size } from "./cgroup/limits.ts";

export interface ContainerSpec {
  readonly name: string;
  readonly build: BuildReference;
  readonly resources: Resources;
  /** Arguments of the first process; paths are those inside the container. */
  readonly command: readonly string[];
  readonly env: readonly string[];
  /** Directory on the host, mounted read-only at /svc. */
  readonly runtimeDirectory: string;
  /** Address of the only resolver in the container's resolv.conf. */
  readonly resolver: string;
  /** The processors it may use, as the kernel writes lists; all of them without. */
  readonly cpus?: string;
  /** It gets the disk of a container that the engine has lost, instead of an empty one. */
  readonly takeOver?: TakeOver;
  /** The container that `createAhead` has made for it, which lacks only its disk, if that. */
  readonly made?: string;
}

export interface TakeOver {
  /** The lost container. */
  readonly from: string;
  /** Called before the disk moves: records durably that it belongs to this container from now on, and where it was. */
  readonly own: (id: string) => void;
}

/** A container of this node as Docker lists it. */
export interface FoundContainer {
  readonly id: string;
  readonly name: string;
  readonly running: boolean;
}

export interface InspectedContainer {
  readonly running: boolean;
  /** Process id of its first process on the host; 0 when it does not run. */
  readonly pid: number;
  readonly exitCode: number;
  readonly oomKilled: boolean;
  /** Host path of the writable layer, if the storage driver reports it. */
  readonly upperDirectory: string | undefined;
  /** Id of its image. Absent: it does not describe the container. */
  readonly image?: string;
  /** The limits that Docker sets when it starts the container. Absent: it does not describe the container. */
  readonly limits?: DockerLimits;
  /** The processors it may use, as it was created; empty: all of them. */
  readonly cpus: string;
}

export interface ContainerEvent {
  readonly kind: "died" | "oom" | "removed";
  readonly id: string;
  readonly exitCode: number | undefined;
}

export interface SnapshotImage {
  readonly id: string;
  readonly snapshotId: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  readonly names?: readonly string[];
}

/** An image as Docker lists it. */
export interface FoundImage {
  readonly id: string;
  /** Names with tag, and names with digest. */
  readonly names: readonly string[];
  /** NAME=value */
  readonly env: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Paths that it declares with `VOLUME`. */
  readonly volumes: readonly string[];
  /** Instructions that it has for builds on top of it, from `ONBUILD`. */
  readonly triggers: readonly string[];
  /** The words of its `SHELL`; none: Docker's own. */
  readonly shell: readonly string[];
  /** Bytes of all its layers. */
  readonly bytes: number;
}

/** Credentials of a registry, for one pull. */
export interface RegistryLogin {
  readonly username: string;
  readonly password: string;
  readonly registry: string;
}

interface EngineFacts {
  readonly version: string;
  readonly storageDriver: string;
  /** Whether Docker can limit the size of a writable layer. */
  readonly diskLimit: boolean;
  /** How the size is limited, or why it is not. */
  readonly diskDetail: string;
  readonly seccomp: boolean;
  readonly runcVersion: string;
  /** Where Docker keeps images and writable layers. */
  readonly dataRoot: string;
  /** The directory in whose file system the writable layers grow. */
  readonly writableRoot: string;
}

/** Whose disk: a container, or what was committed under the name of an image. */
export type DiskOwner = { readonly containerId: string } | { readonly image: string };

/** A disk that is an image in a file of its own. */
interface DiskFile {
  readonly path: string;
  /** Id of the image that it stands on. */
  readonly image: string;
}

export interface Containers {
  /** Resolves to the container's id. Starts nothing. @throws {AppError} no_compatible_node when the image of a disk is gone */
  create(spec: ContainerSpec): Promise<string>;
  /**
   * Makes the container of a copy of a snapshot whose disk was copied ahead and is not stored yet; `create` gives it that disk.
   * Undefined: such a container can only be made with its disk.
   */
  createAhead(spec: ContainerSpec): Promise<string | undefined>;
  /**
   * Gives a container that `createAhead` has made its disk, once `commit` has copied it. False: `create` gives it, because the disk
   * is large. When this rejects, the container is of no use: the caller removes it.
   */
  furnishAhead(id: string, spec: Pick<ContainerSpec, "build" | "resources">): Promise<boolean>;
  /** True while this process owns the container: it has made it, and has not asked for its removal. A row may name it later. */
  isMade(id: string): boolean;
  start(id: string): Promise<void>;
  inspect(id: string): Promise<InspectedContainer | undefined>;
  /** Sends SIGKILL through Docker. A stopped or unknown container counts as success. */
  kill(id: string): Promise<void>;
  /** Removes a running or stopped container with its writable layer. An unknown one counts as success. */
  remove(id: string): Promise<void>;
  rename(id: string, name: string): Promise<void>;
  /** Tells Docker the size: it sets it at each start of the container from now on, and at once while it runs. */
  resize(id: string, size: Size): Promise<void>;
  /**
   * Chooses the processors that a container of this size has from now on, as the kernel writes lists. Undefined: they are not
   * chosen. Only counts; the caller and `resize` set them.
   */
  chooseCpus(id: string, cpuCount: number): string | undefined;
  /** All containers of this node, running or not. */
  list(): Promise<FoundContainer[]>;
  /** Calls back for each event since a time (unix ms) until the signal; rejects when the stream breaks. */
  watch(since: number, onEvent: (event: ContainerEvent) => void, signal: AbortSignal): Promise<void>;
  /** Whether the container's writable layer is on a disk image of its own, whose holes stay holes in a copy. */
  hasOwnDisk(id: string): boolean;
  /** Before the sandbox is frozen: does the part of `commit` that needs no frozen sandbox. */
  copyAhead(id: string, image: string): Promise<void>;
  /** Keeps a copy of a container's writable layer, running or stopped, as an image of this node. */
  commit(id: string, image: string, snapshotId: string): Promise<void>;
  /**
   * Gives the image that was committed of a container its name; before that it counts for nothing. Resolves when it is durable,
   * where that is asked for.
   */
  keep(id: string, image: string, durable: boolean): Promise<void>;
  /** Resolves when what programs have written is on the machine's disk. */
  flushDisk(id: string): Promise<void>;
  /**
   * Names the image below a container's own disk, so that Docker takes it for used when the container is gone. The name
   * goes with `removeImage(image)`. One that has it already counts as success.
   */
  keepImageBelow(id: string, image: string): Promise<void>;
  /**
   * The disk as a file. Nothing writes to it while no program of its container runs. Undefined: it is the engine's own, or there
   * is none.
   */
  diskFile(of: DiskOwner): Promise<DiskFile | undefined>;
  /** Where such a disk has to be, for one that comes from another node. Undefined: disks are the engine's own here. */
  diskPlace(of: DiskOwner): Promise<string | undefined>;
  /** As `keepImageBelow`, for a disk from another node. @param below id of the image that it stands on */
  keepBelow(below: string, image: string): Promise<void>;
  /** Lets programs write to a container's disk again after a commit that was cut. */
  thawDisk(id: string): Promise<void>;
  /** Ids of the containers that a disk image is there for, also of those that the engine has lost. */
  disks(): Promise<readonly string[]>;
  /**
   * Removes disks of containers that the engine has not had in two calls.
   * @param owned containers whose disks stay in any case
   */
  removeOrphans(owned: ReadonlySet<string>): Promise<void>;
  /** Number of layers in an image. */
  layers(image: string): Promise<number>;
  /** Directories of an image's layers on the host; none where the storage driver has no directories. */
  layerDirectories(image: string): Promise<readonly string[]>;
  /** Replaces the image by one with the same content in one layer. */
  flatten(image: string): Promise<void>;
  /** False while a container needs it. An unknown image counts as success. */
  removeImage(image: string): Promise<boolean>;
  /** Images of snapshots of this node, including those without a name. */
  snapshotImages(): Promise<SnapshotImage[]>;
  facts(): Promise<EngineFacts>;
  image(name: string): Promise<FoundImage | undefined>;
  /** @throws {AppError} bad_request with the registry's message */
  pull(name: string, login: RegistryLogin | undefined, watch: PullWatch): Promise<void>;
  /** An archive with one image and its name, as `docker save` makes them. @throws {AppError} bad_request with Docker's message */
  load(archive: Readable, signal: AbortSignal): Promise<void>;
  /** An archive of the image with its layers, as `docker save` makes it. It ends early when the signal comes. */
  save(image: string, signal: AbortSignal): Promise<Readable>;
  /** Adds a name to an image. */
  tag(image: string, name: string): Promise<void>;
  /** Removes one name; the image stays while it has another. False while a container needs it; unknown is success. */
  untag(name: string): Promise<boolean>;
  /** Commits a container's writable layer as an image for builds. Removes the previous image of the name if unused. */
  commitLayer(id: string, image: string): Promise<void>;
  /** All names that builds gave to images, on any node that uses this Docker daemon. */
  buildImages(): Promise<string[]>;
}

interface PullWatch {
  /** Receives a line for people. */
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}
