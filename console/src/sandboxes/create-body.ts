/** What the form of a new sandbox asks the platform for. Pure. */

import type { CreateBody, SandboxDetail } from "../../../shared/api/sandboxes/sandbox-shapes.ts";

export interface CreateForm {
  readonly template: string;
  readonly minutes: string;
  readonly cpu: string;
  readonly memory: string;
  readonly internet: string;
  readonly allowOut: string;
  readonly denyOut: string;
  readonly labels: string;
  readonly variables: string;
  readonly volume: string;
  readonly mountPath: string;
  /** A secret by its name, the host whose requests get it, and the header that has it. */
  readonly secret: string;
  readonly secretHost: string;
  readonly secretHeader: string;
}

export const EMPTY_FORM: CreateForm = {
  template: "base",
  minutes: "5",
  cpu: "",
  memory: "",
  internet: "",
  allowOut: "",
  denyOut: "",
  labels: "",
  variables: "",
  volume: "",
  mountPath: "/mnt/volume",
  secret: "",
  secretHost: "",
  secretHeader: "Authorization",
};

export function bodyOf(form: CreateForm): CreateBody {
  const metadata = fromLines(form.labels);
  const envVars = fromLines(variableLines(form.variables));
  const network = networkOf(form);
  return {
    templateID: form.template,
    timeout: Math.round(Number(form.minutes) * 60),
    ...(form.cpu === "" ? {} : { cpuCount: Number(form.cpu) }),
    ...(form.memory === "" ? {} : { memoryMB: Number(form.memory) }),
    ...(form.internet === "no" ? { allow_internet_access: false } : {}),
    ...(Object.keys(network).length === 0 ? {} : { network }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(Object.keys(envVars).length === 0 ? {} : { envVars }),
    ...(form.volume === "" ? {} : { volumeMounts: [{ name: form.volume, path: form.mountPath }] }),
  };
}

type Model = Pick<
  SandboxDetail,
  | "templateID"
  | "alias"
  | "cpuCount"
  | "memoryMB"
  | "allowInternetAccess"
  | "network"
  | "metadata"
  | "volumeMounts"
  | "lifecycle"
  | "iam"
>;

type Size = Pick<Model, "cpuCount" | "memoryMB">;

interface Likeness {
  readonly form: CreateForm;
  /** What of the model the form does not ask for. */
  readonly left: readonly string[];
}

/** The form for a sandbox like this one. @param template its size; undefined: the model is from a snapshot, which has its own */
export function formLike(model: Model, template: Size | undefined): Likeness {
  const { network = {}, metadata = {}, volumeMounts: [mount] = [] } = model;
  const labels = Object.entries(metadata).map(([name, value]) => `${name}=${value}`);
  const areWritten = JSON.stringify(fromLines(labels.join("\n"))) === JSON.stringify(metadata);
  const own = (size: keyof Size) =>
    template === undefined || template[size] === model[size] ? "" : String(model[size]);
  return {
    form: {
      ...EMPTY_FORM,
      template: model.alias ?? model.templateID,
      cpu: own("cpuCount"),
      memory: own("memoryMB"),
      internet: model.allowInternetAccess === false ? "no" : "",
      allowOut: (network.allowOut ?? []).join("\n"),
      denyOut: (network.denyOut ?? []).join("\n"),
      labels: areWritten ? labels.join("\n") : "",
      ...(mount === undefined ? {} : { volume: mount.name, mountPath: mount.path }),
    },
    left: [...(areWritten ? [] : ["labels that are no lines"]), ...leftOf(model)],
  };
}

/** What would be different of the new one without a word, and may open it. */
function leftOf({ network = {}, volumeMounts = [], lifecycle, iam }: Model): readonly string[] {
  const is: readonly (readonly [what: string, isLeft: boolean])[] = [
    ["variables, which the platform does not show", true],
    ["the volumes after the first", volumeMounts.length > 1],
    ["the headers that rules set", isAny(network.rules)],
    ["the proxy", isAny(network.egressProxy)],
    ["the token that its ports ask for", network.allowPublicTraffic === false],
    ["how its ports are called", network.maskRequestHost !== undefined || isAny(network.httpsPorts)],
    ["the pause at its end", lifecycle?.onTimeout === "pause"],
    ["its identity", isAny(iam)],
  ];
  return is.filter(([, isLeft]) => isLeft).map(([what]) => what);
}

function isAny(value: object | null | undefined): boolean {
  return Object.keys(value ?? {}).length > 0;
}

function networkOf(form: CreateForm): NonNullable<CreateBody["network"]> {
  const allowOut = lines(form.allowOut);
  const denyOut = lines(form.denyOut);
  const host = form.secretHost.trim().toLowerCase();
  return {
    ...(allowOut.length > 0 ? { allowOut } : {}),
    ...(denyOut.length > 0 ? { denyOut } : {}),
    ...(form.secret === "" || host === "" ? {} : { rules: { [host]: [{ transform: { headers: headerOf(form) } }] } }),
  };
}

/** The value stays outside: the platform puts it in the place of its name. */
function headerOf({ secret, secretHeader }: CreateForm): Record<string, string> {
  const name = secretHeader.trim();
  const value = `\${e2b.secrets.${secret}}`;
  return { [name]: name.toLowerCase() === "authorization" ? `Bearer ${value}` : value };
}

function lines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** People paste files of settings: those have comments, and `export` for shells, which would be part of the name. */
function variableLines(text: string): string {
  return lines(text)
    .filter((line) => !line.startsWith("#"))
    .map((line) => line.replace(/^export\s+(?=[A-Za-z_]\w*=)/, ""))
    .join("\n");
}

function fromLines(text: string): Record<string, string> {
  return Object.fromEntries(
    lines(text).map((line) => {
      const at = line.indexOf("=");
      return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}
