/** What the form of a new sandbox asks the platform for. Pure. */

import type { CreateBody } from "../../../shared/api/sandboxes/sandbox-shapes.ts";

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
  const envVars = fromLines(form.variables);
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

function fromLines(text: string): Record<string, string> {
  return Object.fromEntries(
    lines(text).map((line) => {
      const at = line.indexOf("=");
      return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}
