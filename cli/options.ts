/** Values of options by the name that commander makes of their flags. A command reads those that its definition lists. */
export interface Options {
  readonly action?: string;
  readonly actor?: string;
  readonly admin?: boolean;
  readonly all?: boolean;
  readonly apiKey?: boolean;
  readonly apiUrl?: string;
  readonly atDeadline?: "stay" | "kill";
  readonly atOnce?: number;
  readonly autoPause?: boolean;
  /** Undefined: its value is that of the environment. */
  readonly buildArg?: Readonly<Record<string, string | undefined>>;
  readonly check?: boolean;
  readonly context?: string;
  readonly count?: number;
  readonly cpu?: number;
  readonly cwd?: string;
  readonly deadline?: number;
  readonly detach?: boolean;
  readonly disable?: boolean;
  readonly domain?: string;
  readonly drill?: boolean;
  readonly dryRun?: boolean;
  readonly enable?: boolean;
  readonly ended?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly event?: readonly string[];
  readonly expires?: number;
  readonly file?: string;
  readonly finish?: boolean;
  readonly fix?: boolean;
  readonly follow?: boolean;
  readonly force?: boolean;
  /** Of `--no-headers`. */
  readonly headers?: boolean;
  readonly host?: string;
  /** Of `--no-internet`. */
  readonly internet?: boolean;
  readonly json?: boolean;
  readonly keyFile?: string;
  readonly kind?: "node" | "edge";
  readonly level?: "debug" | "info" | "warn" | "error";
  readonly limit?: number;
  readonly limits?: Readonly<Record<string, string>>;
  /** Of `--no-memory`. */
  readonly memory?: boolean;
  readonly memorySize?: number;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly name?: string;
  readonly new?: boolean;
  readonly node?: string;
  readonly output?: "json" | "yaml" | "wide" | "name";
  readonly overlap?: number;
  readonly pid?: number;
  readonly preflight?: boolean;
  readonly project?: string;
  readonly ready?: string;
  readonly reason?: string;
  readonly requestTimeout?: number;
  readonly sandbox?: string;
  readonly sandboxUrl?: string;
  readonly scope?: readonly string[];
  readonly search?: string;
  readonly secretFile?: string;
  readonly selector?: Readonly<Record<string, string>>;
  readonly since?: number;
  readonly start?: string;
  readonly state?: string;
  readonly tag?: readonly string[];
  readonly template?: string;
  readonly timeout?: number;
  readonly tokenFile?: string;
  readonly type?: string;
  readonly udp?: boolean;
  readonly user?: string;
  readonly volume?: Readonly<Record<string, string>>;
  readonly watch?: boolean;
}
