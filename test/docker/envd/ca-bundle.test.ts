/** Programs in real images trust a host that shows a certificate of the node, but only while the policy has rules. */

import { execFile } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { makeAuthority, makeLeaf, readSigner } from "../../../agent/egress/rewrite/certificates.ts";
import { toEnd } from "../../integration/envd/process/following.ts";
import { as, clientsOf } from "../../integration/envd/running-envd.ts";

const run = promisify(execFile);
const RUNTIME = realpathSync(process.env["SVC_TEST_ENVD_RUNTIME"] ?? "/opt/svc/envd-runtime/current");
const CONTROL = { "svc-node-token": "node-secret" };
const HOST = "api.example.test";
const SERVER = `
import http.server, ssl
class Refs(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"1234567890123456789012345678901234567890\\trefs/heads/main\\n"
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8443), Refs)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tmp/leaf.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
`;
const URL = `https://${HOST}:8443/r.git`;
const PROGRAMS = {
  curl: `curl -sSf ${URL}`,
  git: `git ls-remote ${URL}`,
  python: `python3 -c "import urllib.request as u; print(u.urlopen('${URL}').read().decode())"`,
  requests: `python3 -c "from pip._vendor import requests as r; print(r.get('${URL}').text)"`,
  wget: `wget -qO- ${URL}`,
  openssl: `openssl s_client -verify_return_error -brief -connect ${HOST}:8443 </dev/null 2>&1 && echo refs/heads/main`,
  node: `/svc/node -e "fetch('${URL}').then((a) => a.text()).then(console.log)"`,
};
/** Removes our variables, so that a program sees the environment of the system's own programs. */
const BARE = "env -u SSL_CERT_FILE -u NODE_EXTRA_CA_CERTS -u REQUESTS_CA_BUNDLE";

async function start(image: string) {
  const launch = JSON.parse(readFileSync(join(RUNTIME, "envd/launch.json"), "utf8")) as { args: string[] };
  const { stdout } = await run("docker", [
    "run",
    "-d",
    "--label",
    "svc.test=envd",
    "--add-host",
    `${HOST}:127.0.0.1`,
    "-v",
    `${RUNTIME}:/svc:ro`,
    "-e",
    "SVC_ENVD_CONTROL=node-secret",
    "--entrypoint",
    "/svc/tini",
    image,
    "--",
    ...launch.args,
  ]);
  const id = stdout.trim();
  onTestFinished(async () => void (await run("docker", ["rm", "-f", id])));
  const address = (await run("docker", ["inspect", "-f", "{{.NetworkSettings.IPAddress}}", id])).stdout.trim();
  const url = `http://${address}:49983`;
  const health = () =>
    fetch(`${url}/health`).then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(health).toBe(204);
  const { process } = clientsOf(url);
  return {
    id,
    url,
    async sh(script: string, user = "root", envs: Record<string, string> = {}) {
      const ended = await toEnd(
        process.start({ process: { cmd: "/bin/sh", args: ["-c", script], envs }, stdin: false }, as(user)),
      );
      return { out: ended.stdout.toString(), err: ended.stderr.toString(), status: ended.end?.exitCode };
    },
    async send(method: string, path: string, body: object) {
      const reply = await fetch(`${url}${path}`, { method, headers: CONTROL, body: JSON.stringify(body) });
      expect(reply.status).toBe(204);
    },
    async write(path: string, text: string) {
      const headers = { "content-type": "application/octet-stream" };
      const to = `${url}/files?path=${encodeURIComponent(path)}&username=root`;
      expect((await fetch(to, { method: "POST", headers, body: text })).status).toBe(200);
    },
  };
}

test("curl, git, Python, requests, wget, OpenSSL and Node in the base image trust the authority from the rule's coming to its going", async () => {
  const now = Date.now();
  const period = { from: now - 3_600_000, until: now + 3_600_000 };
  const authority = await makeAuthority("svc egress test", period);
  const leaf = await makeLeaf(await readSigner(authority), HOST, period);
  const sandbox = await start("svc/base:latest");
  await sandbox.write("/tmp/leaf.pem", leaf.key + leaf.certificate);
  await sandbox.write("/tmp/server.py", SERVER);
  await sandbox.sh("nohup python3 /tmp/server.py >/tmp/server.log 2>&1 &");
  await expect.poll(async () => (await sandbox.sh(`curl -sSk ${URL}`)).out).toContain("refs/heads/main");

  const believing = async (before = "", names = Object.keys(PROGRAMS) as (keyof typeof PROGRAMS)[]) => {
    const results = [];
    for (const name of names)
      if ((await sandbox.sh(`${before} ${PROGRAMS[name]}`, "user")).out.includes("refs/heads/main")) results.push(name);
    return results;
  };
  const all = Object.keys(PROGRAMS);
  const system = ["curl", "git", "python", "wget", "openssl"] as const;

  expect(await believing()).toEqual([]);
  await sandbox.send("PUT", "/ca-bundle", { caBundle: authority.certificate });
  expect(await believing()).toEqual(all);
  expect(await believing(BARE, [...system])).toEqual(system);
  expect(await believing("sudo")).toEqual(all);

  const made = await sandbox.sh("update-ca-certificates --fresh");
  expect(made.status).toBe(0);
  expect(await believing()).toEqual(all);
  // A resume or a fork initialises envd again; doing it twice changes nothing.
  for (let i = 0; i < 2; i += 1) await sandbox.send("POST", "/init", { caBundle: authority.certificate });
  expect(await believing(BARE, [...system])).toEqual(system);
  const mine = authority.certificate.split("\n")[2] ?? "";
  expect((await sandbox.sh(`grep -cF '${mine}' /etc/ssl/certs/ca-certificates.crt`)).out).toBe("1\n");

  // The user decides about the user's own programs, and about nothing else.
  expect((await sandbox.sh("echo $SSL_CERT_FILE", "user", { SSL_CERT_FILE: "/mine" })).out).toBe("/mine\n");
  const files = "/etc/ssl/certs/ca-certificates.crt /run/svc/ca.pem /usr/local/share/ca-certificates/svc-ca.crt";
  const tried = await sandbox.sh(`for f in ${files}; do echo x >>$f; rm -f $f; mv $f $f.x; done; ls ${files}`, "user");
  expect(tried.status).toBe(0);

  await sandbox.send("POST", "/init", { caBundle: "" });
  expect(await believing()).toEqual([]);
  expect((await sandbox.sh("ls /etc/ssl/certs | grep -c svc-ca; find -L /etc/ssl/certs -type l")).out).toBe("0\n");
  expect((await sandbox.sh("update-ca-certificates --fresh")).status).toBe(0);
  expect(await believing()).toEqual([]);
  expect((await sandbox.sh("env | grep -c CERT", "user")).out).toBe("0\n");
});

test("an image without any certificates gets a bundle with ours, and loses it again", async () => {
  const now = Date.now();
  const authority = await makeAuthority("svc egress test", { from: now, until: now + 3_600_000 });
  const sandbox = await start("svc/test-busybox:latest");
  await sandbox.send("POST", "/init", { caBundle: authority.certificate });
  const files = "/etc/ssl/certs/ca-certificates.crt $SSL_CERT_FILE $REQUESTS_CA_BUNDLE $NODE_EXTRA_CA_CERTS";
  const seen = await sandbox.sh(`cat ${files} | grep -c BEGIN.CERT; ls -l ${files} | cut -c1-10 | sort -u`);
  expect(seen.out).toBe("4\n-rw-r--r--\n");
  const hash = await sandbox.sh("cd /etc/ssl/certs && ls -1 | wc -l && cat [0-9a-f]*.0 | grep -c BEGIN");
  expect(hash.out).toBe("3\n1\n");
  await sandbox.send("POST", "/init", { caBundle: "" });
  const gone = await sandbox.sh(
    "cat /etc/ssl/certs/ca-certificates.crt | wc -c; ls /etc/ssl/certs; echo $SSL_CERT_FILE",
  );
  expect(gone.out).toBe("0\nca-certificates.crt\n\n");
});
