/** The context of a step: user, directory and variables, as the steps before have set them. Pure. */

import { posix } from "node:path";
import type { BuildStep } from "../../../shared/agent-api/build-shapes.ts";
import { substitute } from "./substitute.ts";

export interface StepContext {
  readonly envs: Readonly<Record<string, string>>;
  readonly user: string;
  /** Absolute. */
  readonly workdir: string;
}

/** Context of sandboxes whose steps set nothing else. */
const DEFAULT_USER = "user";
const DEFAULT_WORKDIR = "/home/user";
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The variables of an image, without those of the platform. */
export function contextOf(env: readonly string[]): StepContext {
  const pairs = env.map((pair) => pair.split(/=(.*)/s)).map(([name = "", value = ""]) => [name, value] as const);
  const envs = Object.fromEntries(pairs.filter(([name]) => name !== "" && !/^(SVC|E2B)_/.test(name)));
  return { envs, user: DEFAULT_USER, workdir: DEFAULT_WORKDIR };
}

/** The step with its variables substituted: what is run, logged and hashed. */
export function resolveStep<S extends BuildStep>(step: S, context: StepContext): S;
export function resolveStep(step: BuildStep, context: StepContext): BuildStep {
  const resolve = (text: string) => substitute(text, lookUpIn(context));
  switch (step.type) {
    case "RUN":
    case "ENV":
      return step;
    case "COPY":
      return { ...step, destination: resolve(step.destination) };
    case "WORKDIR":
      return { ...step, path: posix.resolve(context.workdir, resolve(step.path)) };
    case "USER":
      return { ...step, user: userOf(resolve(step.user)) };
  }
}

/** The context after the step, whose variables must be substituted. */
export function contextAfter(step: BuildStep, context: StepContext): StepContext {
  switch (step.type) {
    case "RUN":
    case "COPY":
      return context;
    case "ENV":
      return step.variables.reduce<StepContext>(
        (before, [name, value]) => ({
          ...before,
          envs: { ...before.envs, [name]: substitute(value, lookUpIn(before)) },
        }),
        context,
      );
    case "WORKDIR":
      return { ...context, workdir: step.path };
    case "USER":
      return { ...context, user: step.user };
  }
}

// An image without PATH gets the usual one.
function lookUpIn({ envs, user }: StepContext): (name: string) => string | undefined {
  const always: Record<string, string> = {
    PATH: DEFAULT_PATH,
    USER: user,
    HOME: user === "root" ? "/root" : `/home/${user}`,
  };
  return (name) => (Object.hasOwn(envs, name) ? envs[name] : Object.hasOwn(always, name) ? always[name] : undefined);
}

// Dockerfiles allow `user:group`; only the user is kept.
function userOf(text: string): string {
  return text.split(":")[0] ?? "";
}

/** The step as a line of the log. */
export function describeStep(step: BuildStep): string {
  switch (step.type) {
    case "RUN":
      return `RUN ${step.command}`;
    case "COPY":
      return `COPY ${step.source} ${step.destination}`;
    case "ENV":
      // Names only: values may be secrets, and logs are kept and shown.
      return `ENV ${step.variables.map(([name]) => name).join(" ")}`;
    case "WORKDIR":
      return `WORKDIR ${step.path}`;
    case "USER":
      return `USER ${step.user}`;
  }
}
