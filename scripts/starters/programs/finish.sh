# The programs in their image; read by scripts/host/starters/finish.
# shellcheck shell=bash
# A program that is missing shows it here, and not first in a row of the matrix.
for program in ruby php lua5.4 tclsh guile sbcl Rscript java jdb go rustc escript elixir mariadbd redis-server memcached etcd etcdctl \
  mosquitto nginx apache2 php-fpm8.2 cgi-fcgi haproxy gunicorn sshd cron tmux screen emacs ffmpeg gdb strace; do
  command -v "$program" >/dev/null
done
test -x /usr/lib/postgresql/15/bin/pg_ctl
test -x /usr/lib/rabbitmq/bin/rabbitmq-server
# The user of sandboxes reads what these make for themselves, and starts them as its own.
chmod a+rX /etc/rabbitmq /etc/redis /etc/mosquitto 2>/dev/null || true
