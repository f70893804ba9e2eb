/** Databases, queues and web servers as an agent starts them: without an init, below a directory of its own. */

import { counter, type Program, program } from "../program.ts";
import { BASH } from "./languages.ts";

const NGINX = `daemon on;
pid nginx.pid;
error_log error.log;
worker_processes 2;
events {}
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server { listen 127.0.0.1:8221; location / { stub_status; } }
}
`;

const APACHE = `ServerRoot /usr/lib/apache2
ServerName localhost
Listen 127.0.0.1:8222
PidFile DIRECTORY/apache.pid
ErrorLog DIRECTORY/error.log
DefaultRuntimeDir DIRECTORY
Mutex file:DIRECTORY default
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule status_module modules/mod_status.so
<Location "/">
  SetHandler server-status
</Location>
`;

const PHP_FPM = `[global]
pid = DIRECTORY/fpm.pid
error_log = DIRECTORY/error.log
[www]
listen = DIRECTORY/socket
pm = static
pm.max_children = 2
pm.status_path = /status
`;

const HAPROXY = `global
  stats socket DIRECTORY/socket
defaults
  mode http
  timeout client 10s
  timeout connect 10s
  timeout server 10s
frontend front
  bind 127.0.0.1:8224
  http-request return status 200
`;

const GUNICORN = `import os
n = 0
def application(environ, start_response):
    global n
    n += 1
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {n}\\n".encode()]
`;

const WEBSOCKET_SERVER = `const { WebSocketServer } = require("ws");
new WebSocketServer({ host: "127.0.0.1", port: 8226 }).on("connection", (client) => {
  let n = 0;
  client.on("message", () => client.send(String(++n)));
});
`;

const WEBSOCKET_CLIENT = `const WebSocket = require("ws");
const client = new WebSocket("ws://127.0.0.1:8226");
const say = (n) => console.log(process.pid, String(n));
client.on("open", () => say(0));
client.on("message", say);
client.on("close", () => process.exit(1));
require("node:readline").createInterface({ input: process.stdin }).on("line", () => client.send("count"));
`;

const listens = (port: number) => `reached bash -c 'ss -Htln sport = :${port} | grep -q .'`;
/** A file of settings with the directory's own path in it. */
const placed = (file: string) => `sed -i "s|DIRECTORY|$PWD|g" ${file}`;

export const SERVERS: readonly Program[] = [
  program({
    name: "PostgreSQL",
    start: `PATH=/usr/lib/postgresql/15/bin:$PATH
[ -d data ] || initdb -A trust -U user -D data >>log
# After a boot another process may have the number in it.
rm -f data/postmaster.pid
pg_ctl -w -t 60 -D data -l log -o "-c unix_socket_directories=$PWD -c listen_addresses=" start >>log
psql -h "$PWD" -U user -d postgres -qAt -c "create table if not exists counted (me bigint, n bigint); insert into counted select $$, 0 where not exists (select from counted)" 2>>log`,
    ask: `psql -h "$PWD" -U user -d postgres -qAt -F ' ' -c "update counted set n = n + 1 returning me, n"`,
    isDurable: true,
  }),
  program({
    name: "MariaDB",
    start: `[ -d data ] || mariadb-install-db --no-defaults --datadir="$PWD/data" --auth-root-authentication-method=normal >>log
apart mariadbd --no-defaults --datadir="$PWD/data" --socket="$PWD/socket" --pid-file="$PWD/pid" --skip-networking
reached mariadb-admin --no-defaults -S "$PWD/socket" -u root ping
mariadb --no-defaults -S "$PWD/socket" -u root -e "create database if not exists matrix; use matrix; create table if not exists counted (me bigint, n bigint); insert into counted select $$, 0 from dual where not exists (select 1 from counted)"`,
    ask: `mariadb --no-defaults -S "$PWD/socket" -u root -D matrix -N -B -e "update counted set n = n + 1; select me, n from counted"`,
    isDurable: true,
  }),
  program({
    name: "Redis",
    start: `apart redis-server --port 0 --unixsocket "$PWD/socket" --save '' --appendonly no --dir "$PWD"
reached redis-cli -s "$PWD/socket" ping
redis-cli -s "$PWD/socket" mset me $$ n 0 >>log`,
    ask: `echo "$(redis-cli -s "$PWD/socket" get me) $(redis-cli -s "$PWD/socket" incr n)"`,
  }),
  program({
    name: "memcached",
    start: `apart memcached -s "$PWD/socket"
reached bash -c 'printf "version\\r\\nquit\\r\\n" | socat -t 2 - UNIX:socket | grep -q VERSION'
printf 'set me 0 0 %s\\r\\n%s\\r\\nset n 0 0 1\\r\\n0\\r\\nquit\\r\\n' "$(printf %s $$ | wc -c)" $$ | socat -t 2 - UNIX:socket >>log`,
    ask: `printf 'get me\\r\\nincr n 1\\r\\nquit\\r\\n' | socat -t 2 - UNIX:socket | tr -d '\\r' | awk 'NR == 2 || NR == 4' | paste -s -d ' '`,
  }),
  program({
    name: "RabbitMQ",
    start: `export HOME=$PWD RABBITMQ_NODENAME=matrix@localhost RABBITMQ_MNESIA_BASE=$PWD/mnesia RABBITMQ_LOG_BASE=$PWD/logs
apart /usr/lib/rabbitmq/bin/rabbitmq-server
reached /usr/lib/rabbitmq/bin/rabbitmqctl -q await_startup
/usr/lib/rabbitmq/bin/rabbitmqctl -q eval 'persistent_term:put(matrix, counters:new(1, [])).' >>log`,
    ask: `export HOME=$PWD RABBITMQ_NODENAME=matrix@localhost
/usr/lib/rabbitmq/bin/rabbitmqctl -q eval 'C = persistent_term:get(matrix), counters:add(C, 1, 1), lists:flatten(io_lib:format("~s ~b", [os:getpid(), counters:get(C, 1)])).' | tr -d '"'`,
  }),
  program({
    name: "nginx",
    files: { "nginx.conf": NGINX },
    start: `/usr/sbin/nginx -e "$PWD/error.log" -p "$PWD" -c "$PWD/nginx.conf" 2>>log
${listens(8221)}`,
    ask: `echo "$(cat nginx.pid) $(curl -fsS http://127.0.0.1:8221/ | awk 'NR == 3 { print $3 }')"`,
  }),
  program({
    name: "Apache",
    files: { "apache.conf": APACHE },
    start: `${placed("apache.conf")}
rm -f apache.pid
/usr/sbin/apache2 -f "$PWD/apache.conf" -k start 2>>log
${listens(8222)}`,
    ask: `echo "$(cat apache.pid) $(curl -fsS 'http://127.0.0.1:8222/?auto' | awk '/^Total Accesses/ { print $3 }')"`,
  }),
  program({
    name: "PHP-FPM",
    files: { "fpm.conf": PHP_FPM },
    start: `${placed("fpm.conf")}
/usr/sbin/php-fpm8.2 --daemonize --fpm-config "$PWD/fpm.conf" 2>>log
reached env SCRIPT_NAME=/status SCRIPT_FILENAME=/status REQUEST_METHOD=GET cgi-fcgi -bind -connect socket`,
    ask: `echo "$(cat fpm.pid) $(SCRIPT_NAME=/status SCRIPT_FILENAME=/status REQUEST_METHOD=GET cgi-fcgi -bind -connect socket | awk '/^accepted conn/ { print $3 }')"`,
  }),
  program({
    name: "HAProxy",
    files: { "haproxy.conf": HAPROXY },
    start: `${placed("haproxy.conf")}
/usr/sbin/haproxy -D -p "$PWD/pid" -f haproxy.conf 2>>log
${listens(8224)}`,
    // Of the frontend: the number of the whole process has the questions to its socket, too.
    ask: `curl -fsS http://127.0.0.1:8224/ >>log
echo 'show info;show stat' | socat -t 2 - UNIX:socket | awk '
  /^Pid:/ { me = $2 }
  /^# pxname,/ { columns = split($0, name, ","); for (i = 1; i <= columns; i++) if (name[i] == "req_tot") at = i }
  /^front,FRONTEND,/ { split($0, value, ","); n = value[at] }
  END { print me, n }'`,
  }),
  program({
    name: "Gunicorn",
    files: { "counting.py": GUNICORN, "gunicorn.conf.py": "bind = '127.0.0.1:8225'\nworkers = 1\n" },
    start: `apart gunicorn counting:application
${listens(8225)}`,
    ask: "curl -fsS http://127.0.0.1:8225/",
  }),
  counter(
    "A WebSocket server with a live client",
    "node client.cjs",
    { "server.cjs": WEBSOCKET_SERVER, "client.cjs": WEBSOCKET_CLIENT },
    {
      packages: ["ws"],
      before: `apart node server.cjs\nuntil (exec 3<>/dev/tcp/127.0.0.1/8226) 2>/dev/null; do sleep 0.1; done`,
    },
  ),
  program({
    name: "Mosquitto (MQTT)",
    start: `printf 'listener 8227 127.0.0.1\\nallow_anonymous true\\n' >mosquitto.conf
apart mosquitto -c mosquitto.conf
${listens(8227)}
mosquitto_pub -p 8227 -r -t n -m 0
pgrep -x mosquitto >me`,
    ask: `n=$(($(mosquitto_sub -p 8227 -C 1 -W 10 -t n) + 1))
mosquitto_pub -p 8227 -r -t n -m $n
kill -0 "$(cat me)" && echo "$(cat me) $n"`,
  }),
  program({
    name: "etcd",
    start: `apart etcd --data-dir data --listen-client-urls http://127.0.0.1:8228 --advertise-client-urls http://127.0.0.1:8228 --listen-peer-urls http://127.0.0.1:8229 --initial-advertise-peer-urls http://127.0.0.1:8229 --initial-cluster default=http://127.0.0.1:8229
export ETCDCTL_API=3
reached etcdctl --endpoints http://127.0.0.1:8228 endpoint health`,
    ask: `ETCDCTL_API=3 etcdctl --endpoints http://127.0.0.1:8228 put key value -w json | jq -r '.header | "\\(.member_id) \\(.revision)"'`,
    isDurable: true,
  }),
  counter(
    "An SSH session",
    `ssh -p 8230 -i key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null user@127.0.0.1 "bash $PWD/count.sh"`,
    { "count.sh": BASH },
    {
      before: `sudo mkdir -p /run/sshd
sudo usermod -p '*' user
[ -f key ] || ssh-keygen -q -t ed25519 -N '' -f key
mkdir -p -m 700 ~/.ssh && cp key.pub ~/.ssh/authorized_keys && chmod 600 ~/.ssh/authorized_keys
sudo /usr/sbin/sshd -p 8230 -o UsePAM=no -o ListenAddress=127.0.0.1
${listens(8230)}`,
    },
  ),
  program({
    name: "cron",
    start: `sudo rm -f /run/crond.pid
sudo cron
echo "* * * * * echo tick >>$PWD/ticks" | crontab -
: >ticks`,
    ask: `echo "$(pgrep -o -x cron) $(wc -l <ticks)"`,
    counts: "time",
    growsWithinMs: 130_000,
  }),
];
