import { expect, test } from "vitest";
import { ofTheInternet } from "../../../../agent/egress/company/company-target.ts";
import { PROXY_MANNER, readProxyRequest } from "../../../../agent/egress/company/proxy-request.ts";
import { proxyVariables, readCompanyProxies } from "../../../../agent/host/company-proxies.ts";

const NONE = { sandboxNoProxy: "" };

test("settings become proxies, whose password is only in the header for them", () => {
  expect(readCompanyProxies(NONE)).toBeUndefined();
  const https = { ...NONE, sandboxHttpsProxy: "http://me:p%40ss@proxy.corp:3128" };
  expect(readCompanyProxies(https)).toEqual({
    https: { host: "proxy.corp", port: 3128, authorization: `Basic ${Buffer.from("me:p@ss").toString("base64")}` },
  });
  expect(readCompanyProxies({ ...NONE, sandboxHttpProxy: "http://10.0.0.5/" })).toEqual({
    http: { host: "10.0.0.5", port: 80 },
  });
});

test.each([
  ["https://secret:hush@proxy:3128", "is not the address of an HTTP proxy"],
  ["socks5://proxy:1080", "is not the address of an HTTP proxy"],
  ["proxy:3128", "is not the address of an HTTP proxy"],
  ["3128", "is not an address"],
  ["http://proxy:3128/path", "has more than a host and a port"],
  ["http://[::1]:3128", "has a host that is neither a name nor an IPv4 address"],
  ["http://proxy:0", "has no port"],
])("the proxy %s is refused by the setting's name, without its value", (text, why) => {
  const read = () => readCompanyProxies({ ...NONE, sandboxHttpProxy: text });
  expect(read).toThrow(`SVC_SANDBOX_HTTP_PROXY ${why}`);
  expect(read).not.toThrow("hush");
});

test("exceptions without a proxy are a mistake", () => {
  expect(() => readCompanyProxies({ sandboxNoProxy: "a.test" })).toThrow("SVC_SANDBOX_NO_PROXY needs");
});

test("variables name the node's proxy in both spellings, and always leave the sandbox's own servers alone", () => {
  const http = { host: "10.0.0.5", port: 3128, authorization: "Basic c2VjcmV0" };
  expect(proxyVariables({ http }, { sandboxNoProxy: "a.test, .b.test,localhost," }, "10.213.0.1:5050")).toEqual({
    http_proxy: "http://10.213.0.1:5050",
    HTTP_PROXY: "http://10.213.0.1:5050",
    no_proxy: "localhost,127.0.0.1,::1,a.test,.b.test",
    NO_PROXY: "localhost,127.0.0.1,::1,a.test,.b.test",
    NODE_USE_ENV_PROXY: "1",
  });
  expect(proxyVariables(undefined, NONE, "10.213.0.1:5050")).toEqual({});
});

test.each([
  ["CONNECT Pypi.org:443 HTTP/1.1", { kind: "tunnel", host: "pypi.org", port: 443 }],
  ["CONNECT 203.0.113.7:22 HTTP/1.0", { kind: "tunnel", host: "203.0.113.7", port: 22 }],
  ["GET http://mirror.example/debian HTTP/1.1", { kind: "plain", host: "mirror.example", port: 80 }],
  ["POST HTTP://a.test:8080 HTTP/1.1", { kind: "plain", host: "a.test", port: 8080 }],
  ["GET / HTTP/1.1", undefined],
  ["GET https://a.test/ HTTP/1.1", undefined],
  ["GET http://user@a.test/ HTTP/1.1", undefined],
  ["GET http://a.test\\@b.test/ HTTP/1.1", undefined],
  ["CONNECT a.test HTTP/1.1", undefined],
  ["CONNECT a.test:0 HTTP/1.1", undefined],
  ["CONNECT a.test:99999 HTTP/1.1", undefined],
  ["CONNECT 2130706433:80 HTTP/1.1", undefined],
  ["CONNECT 0x7f.1:80 HTTP/1.1", undefined],
  ["CONNECT 127.1:80 HTTP/1.1", undefined],
  ["CONNECT [::1]:80 HTTP/1.1", undefined],
  ["CONNECT a.test:443 HTTP/2", undefined],
  ["CONNECT ex\u00aample.test:443 HTTP/1.1", undefined],
])("the request line %j is read as %j", (line, request) => {
  expect(readProxyRequest(line)).toEqual(request);
});

test("a head is read when it is whole, and not before", () => {
  expect(PROXY_MANNER.glimpse(Buffer.from("CONNECT a.test:1 HTTP/1.1\r\nHost: a\r\n"))).toEqual({
    is: "more",
    bytes: 37,
  });
  expect(PROXY_MANNER.glimpse(Buffer.from("CONNECT a.test:1 HTTP/1.1\r\n\r\nbytes"))).toEqual({
    is: "name",
    name: "CONNECT a.test:1 HTTP/1.1",
  });
});

test.each(["intranet", "localhost", "a.localhost", "wiki.corp", "nas.local", "x.internal", "1.0.0.127.in-addr.arpa"])(
  "%s is no name of the internet",
  (name) => expect(ofTheInternet(name)).toBe(false),
);
