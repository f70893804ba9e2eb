/** An HTTP and WebSocket server in Python's standard library, which tests put into a sandbox to reach it from outside. */

/** `python3 server.py PORT ADDRESS [PEM]` answers with the request as JSON, and serves a few special paths. */
export const serverScript = String.raw`
import base64, hashlib, json, socket, ssl, struct, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def body(self):
        if "chunked" in self.headers.get("transfer-encoding", ""):
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                piece = self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    return
                yield piece
        left = int(self.headers.get("content-length", 0))
        while left > 0:
            piece = self.rfile.read(min(left, 1 << 20))
            if not piece:
                return
            left -= len(piece)
            yield piece

    def reply(self, status, data, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def chunks(self, pieces, pause):
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
            time.sleep(pause)
        self.wfile.write(b"0\r\n\r\n")

    def zeros(self, size):
        self.send_response(200)
        self.send_header("content-length", str(size))
        self.end_headers()
        block = bytes(1 << 20)
        while size > 0:
            self.wfile.write(block[: min(size, len(block))])
            size -= len(block)

    def websocket(self):
        key = self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("upgrade", "websocket")
        self.send_header("connection", "Upgrade")
        self.send_header("sec-websocket-accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while True:
            first, second = self.rfile.read(2)
            size = second & 127
            if size == 126:
                size = struct.unpack(">H", self.rfile.read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.rfile.read(8))[0]
            mask = self.rfile.read(4)
            data = bytes(byte ^ mask[index % 4] for index, byte in enumerate(self.rfile.read(size)))
            head = bytes([first, size]) if size < 126 else bytes([first, 126]) + struct.pack(">H", size)
            self.wfile.write(head + data)
            if first & 15 == 8:
                return

    def do(self):
        if self.headers.get("upgrade", "").lower() == "websocket":
            with open("/tmp/handshake", "w") as file:
                file.write(self.raw_requestline.decode() + str(self.headers))
            return self.websocket()
        if self.path == "/hash":
            digest = hashlib.sha256()
            for piece in self.body():
                digest.update(piece)
            return self.reply(200, digest.hexdigest().encode())
        text = b"".join(self.body()).decode()
        if self.path == "/stream":
            return self.chunks((b"piece %d\n" % index for index in range(5)), 0.2)
        if self.path == "/forever":
            return self.chunks((b"tick\n" for _ in range(100000)), 0.2)
        if self.path.startswith("/zeros/"):
            return self.zeros(int(self.path[7:]))
        if self.path == "/redirect":
            return self.reply(302, b"", [("location", "/elsewhere")])
        status = int(self.path[8:]) if self.path.startswith("/status/") else 200
        headers = {name.lower(): value for name, value in self.headers.items()}
        data = {"method": self.command, "path": self.path, "headers": headers, "body": text}
        self.reply(status, json.dumps(data).encode(), [("set-cookie", "a=1"), ("set-cookie", "b=2")])

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do

class Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
    request_queue_size = 256

server = Server((sys.argv[2], int(sys.argv[1])), Handler)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
`;
