/** What the agent needs of a container engine, in its own words. Implemented on Docker by docker.ts, in tests by a fake. */

import type { Readable } from "node:stream";
import type { BuildReference, Resources } from "../../shared/agent-api/routes.ts";

export interface ContainerSpec {
  readonly name: string;
  readonly build: BuildReference;
  readonly resources: Resources;
  /** First process and its arguments, as they are inside. */
  readonly command: readonly string[];
  readonly env: readonly string[];
  /** Directory on the host, mounted read-only at /svc. */
  readonly runtimeDirectory: string;
  /** The only resolver it is told of. */
  readonly resolver: string;
}

/** A container of this node as the engine knows it. */
export interface FoundContainer {
  readonly id: string;
  readonly name: string;
  readonly running: boolean;
}

interface InspectedContainer {
  readonly running: boolean;
  /** Process id of its first process on the host; 0 when it does not run. */
  readonly pid: number;
  readonly exitCode: number;
  readonly oomKilled: boolean;
  /** Where the writable layer is on the host, if the storage driver says so. */
  readonly upperDirectory: string | undefined;
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
}

/** An image as the engine has it. */
export interface FoundImage {
  readonly id: string;
  /** Names with tag, and names with digest. */
  readonly names: readonly string[];
  /** NAME=value */
  readonly env: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** All of its layers. */
  readonly bytes: number;
}

/** What opens a registry, for one pull. */
export interface RegistryLogin {
  readonly username: string;
  readonly password: string;
  readonly registry: string;
}

interface EngineFacts {
  readonly version: string;
  readonly storageDriver: string;
  /** The size of a writable layer can be limited. */
  readonly diskLimit: boolean;
  readonly seccomp: boolean;
  readonly runcVersion: string;
  /** Where the engine keeps images and writable layers. */
  readonly dataRoot: string;
}

export interface Containers {
  /** Resolves to the container's id. Creates nothing that runs. */
  create(spec: ContainerSpec): Promise<string>;
  start(id: string): Promise<void>;
  inspect(id: string): Promise<InspectedContainer | undefined>;
  /** SIGKILL through the engine. Not running and unknown are success. */
  kill(id: string): Promise<void>;
  /** Running or not, with its writable layer. Unknown is success. */
  remove(id: string): Promise<void>;
  rename(id: string, name: string): Promise<void>;
  /** All containers of this node, running or not. */
  list(): Promise<FoundContainer[]>;
  /** Calls back for each event since a time (unix ms) until the signal; rejects when the stream breaks. */
  watch(since: number, onEvent: (event: ContainerEvent) => void, signal: AbortSignal): Promise<void>;
  /** The writable layer of a container, running or not, as an image of this node. */
  commit(id: string, image: string, snapshotId: string): Promise<void>;
  /** How many an image is stacked of. */
  layers(image: string): Promise<number>;
  /** The same image in one layer. */
  flatten(image: string): Promise<void>;
  /** False while a container needs it. Unknown is success. */
  removeImage(image: string): Promise<boolean>;
  /** Images of snapshots of this node, also those whose name is gone. */
  snapshotImages(): Promise<SnapshotImage[]>;
  facts(): Promise<EngineFacts>;
  image(name: string): Promise<FoundImage | undefined>;
  /** @throws {AppError} bad_request with what the registry said */
  pull(name: string, login: RegistryLogin | undefined, watch: PullWatch): Promise<void>;
  /** An archive with one image and its name, as `docker save` makes them. @throws {AppError} bad_request in the engine's words */
  load(archive: Readable, signal: AbortSignal): Promise<void>;
  /** One more name for an image. */
  tag(image: string, name: string): Promise<void>;
  /** Takes one name away; the image stays while it has another one. False while a container needs it; unknown is success. */
  untag(name: string): Promise<boolean>;
  /** The writable layer of a container as an image for builds. What had the name before is removed if nobody needs it. */
  commitLayer(id: string, image: string): Promise<void>;
  /** All names that builds give to images, of whichever node. */
  buildImages(): Promise<string[]>;
}

interface PullWatch {
  /** A line for people. */
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}
