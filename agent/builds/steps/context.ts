/** The context of a step: user, directory and variables, as the steps before have set them. Pure. */

import { posix } from "node:path";
import type { BuildStep } from "../../../shared/agent-api/build-shapes.ts";
import { type LookUp, refersTo, SubstitutionError, substitute } from "../../../shared/dockerfile/substitute.ts";
import { AppError } from "../../../shared/http/errors.ts";

export interface StepContext {
  readonly envs: Readonly<Record<string, string>>;
  readonly user: string;
  /** Absolute. */
  readonly workdir: string;
}

/** The user of a context: `name` or `name:group`, each a name or a number. */
export function splitUser(text: string): { readonly name: string; readonly group: string | undefined } {
  const [name = "", group] = text.split(":");
  return { name, group };
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

/**
 * The step with its variables substituted: what is run and logged.
 * @param home of the context's user, for `$HOME`; only an image knows it
 * @throws {AppError} bad_request for a reference that is not understood, and a user that is none
 */
export function resolveStep<S extends BuildStep>(step: S, context: StepContext, home: string): S;
export function resolveStep(step: BuildStep, context: StepContext, home: string): BuildStep {
  const resolve = (text: string, envs = context.envs) => substituted(text, lookUpIn({ ...context, envs }, home));
  switch (step.type) {
    case "RUN":
      return step;
    case "ENV": {
      // Values see the variables of their own step that stand before them.
      const envs = { ...context.envs };
      const variables = step.variables.map(([name, value]): [string, string] => {
        const resolved = resolve(value, envs);
        envs[name] = resolved;
        return [name, resolved];
      });
      return { ...step, variables };
    }
    case "COPY":
      return {
        ...step,
        destination: resolve(step.destination),
        ...(step.user === undefined ? {} : { user: userOf(resolve(step.user)) }),
      };
    case "WORKDIR":
      return { ...step, path: posix.resolve(context.workdir, resolve(step.path)) };
    case "USER":
      return { ...step, user: userOf(resolve(step.user)) };
  }
}

/** @throws {AppError} bad_request for a reference that is not understood */
export function substituted(text: string, lookUp: LookUp): string {
  try {
    return substitute(text, lookUp);
  } catch (error) {
    throw error instanceof SubstitutionError ? new AppError("bad_request", error.message, { cause: error }) : error;
  }
}

/** Whether resolving the step needs the home of the context's user. */
export function needsHome(step: BuildStep, { envs }: StepContext): boolean {
  if (Object.hasOwn(envs, "HOME")) return false;
  const texts =
    step.type === "ENV"
      ? step.variables.map(([, value]) => value)
      : step.type === "COPY"
        ? [step.destination, step.user ?? ""]
        : step.type === "WORKDIR"
          ? [step.path]
          : step.type === "USER"
            ? [step.user]
            : [];
  return texts.some((text) => refersTo(text, "HOME"));
}

/** The context after the step, whose variables must be substituted. */
export function contextAfter(step: BuildStep, context: StepContext): StepContext {
  switch (step.type) {
    case "RUN":
    case "COPY":
      return context;
    case "ENV":
      return { ...context, envs: { ...context.envs, ...Object.fromEntries(step.variables) } };
    case "WORKDIR":
      return { ...context, workdir: step.path };
    case "USER":
      return { ...context, user: step.user };
  }
}

// An image without PATH gets the usual one.
function lookUpIn({ envs, user }: StepContext, home: string): LookUp {
  const always: Record<string, string> = { PATH: DEFAULT_PATH, USER: splitUser(user).name, HOME: home };
  return (name) => (Object.hasOwn(envs, name) ? envs[name] : Object.hasOwn(always, name) ? always[name] : undefined);
}

/** `name` or `name:group`. A trailing colon names no group, as in a Dockerfile. */
function userOf(text: string): string {
  const [name = "", group = "", ...more] = text.split(":");
  if (more.length > 0 || (name === "" && text !== "")) throw new AppError("bad_request", `invalid username: '${text}'`);
  return group === "" ? name : `${name}:${group}`;
}

/** The owner of what a COPY brings. As in Docker, a number alone is that of the group, too. */
export function ownerOf({ user }: Extract<BuildStep, { type: "COPY" }>, context: StepContext): string {
  if (user === undefined || user === "") return context.user;
  return /^\d+$/.test(user) ? `${user}:${user}` : user;
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
