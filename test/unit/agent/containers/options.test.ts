import { expect, test } from "vitest";
import { containerOptions } from "../../../../agent/containers/options.ts";
import { AGENT_CAPABILITIES } from "../../../../machine/checks/programs.ts";
import { build, resources } from "../../../support/fakes/agent-parts.ts";

const spec = {
  name: "svc-x",
  build,
  resources,
  command: ["/svc/tini", "--", "/svc/node"],
  env: ["SVC_ENVD_CONTROL=secret"],
  runtimeDirectory: "/opt/runtime/1",
  resolver: "10.99.0.1",
};
const node = {
  nodeId: "n1",
  runtime: "svc",
  seccomp: "{}",
  openFiles: 1024,
  userLimits: { nproc: -1, memlock: 65_536 },
  diskLimit: false,
  sudo: true,
};

test("a container has no network but the slot's, no privileges and no way to reach the Docker daemon", () => {
  const { HostConfig } = containerOptions(spec, node);
  expect(HostConfig).toMatchObject({
    Runtime: "svc",
    NetworkMode: "none",
    Privileged: false,
    CapDrop: ["ALL"],
    IpcMode: "private",
    CgroupnsMode: "private",
    SecurityOpt: ["seccomp={}", "no-new-privileges=false"],
    Binds: ["/opt/runtime/1:/svc:ro"],
    LogConfig: { Type: "none" },
    RestartPolicy: { Name: "no" },
    Dns: ["10.99.0.1"],
  });
  for (const never of ["NET_RAW", "NET_ADMIN", "SYS_ADMIN", "SYS_PTRACE", "MKNOD", "SYS_MODULE"]) {
    expect(HostConfig.CapAdd).not.toContain(never);
  }
});

test("doctor wants each capability of a container of the agent, too, which restores its processes with them", () => {
  const { HostConfig } = containerOptions(spec, node);
  expect(Object.keys(AGENT_CAPABILITIES)).toEqual(
    expect.arrayContaining((HostConfig.CapAdd ?? []).map((name) => `CAP_${name}`)),
  );
});

test("a container's limits are those of its resources, without swap", () => {
  const { HostConfig } = containerOptions(spec, node);
  expect(HostConfig).toMatchObject({
    Memory: 512 * 1024 * 1024,
    MemorySwap: 512 * 1024 * 1024,
    NanoCpus: 2_000_000_000,
    PidsLimit: 4096,
    Ulimits: [
      { Name: "nofile", Soft: 1024, Hard: 1024 },
      { Name: "core", Soft: 0, Hard: 0 },
      { Name: "nproc", Soft: -1, Hard: -1 },
      { Name: "memlock", Soft: 65_536, Hard: 65_536 },
    ],
  });
});

test("a container with fewer CPUs than the machine has a set of processors beside its limit of processor time", () => {
  expect(containerOptions({ ...spec, cpus: "1,3" }, node).HostConfig).toMatchObject({
    CpusetCpus: "1,3",
    NanoCpus: 2_000_000_000,
  });
  expect(containerOptions(spec, node).HostConfig).not.toHaveProperty("CpusetCpus");
});

test("the disk is limited where the storage driver supports it", () => {
  expect(containerOptions(spec, node).HostConfig).not.toHaveProperty("StorageOpt");
  expect(containerOptions(spec, { ...node, diskLimit: true }).HostConfig.StorageOpt).toEqual({ size: "1024M" });
});

test("an image that does without sudo cannot gain privileges", () => {
  const { HostConfig } = containerOptions(spec, { ...node, sudo: false });
  expect(HostConfig.SecurityOpt).toContain("no-new-privileges=true");
});

test("the container is labelled with its node, and its only secret is the control token", () => {
  const options = containerOptions(spec, node);
  expect(options.Labels).toMatchObject({ "svc.node": "n1", "svc.build": "b1" });
  expect(options.Env).toEqual(["SVC_ENVD_CONTROL=secret"]);
  expect([...options.Entrypoint, ...options.Cmd]).toEqual(spec.command);
});
