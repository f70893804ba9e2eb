# The template programs: what its image holds beside that of the base template. Its hash, with that of the file beside it and of the
# base image, names the image.
# shellcheck shell=bash disable=SC2034

STARTER_ABOUT='languages, databases, servers and tools of Debian, which npm run matrix pauses and copies one by one; for tests'
STARTER_IMAGE=svc/starter/programs

STARTER_PACKAGES=(
  ruby php8.2-cli lua5.4 tcl guile-3.0 sbcl r-base-core openjdk-17-jdk-headless golang-go rustc erlang-base elixir
  postgresql-15 mariadb-server redis-server memcached rabbitmq-server etcd-server etcd-client mosquitto mosquitto-clients
  nginx-light apache2 php8.2-fpm libfcgi-bin haproxy gunicorn openssh-server cron
  tmux screen emacs-nox ffmpeg gdb strace
)
declare -A STARTER_SETS=()
STARTER_BUILT=
STARTER_NPM=()
STARTER_CHANGES=()

STARTER_CPU_COUNT=2
STARTER_MEMORY_MB=2048
STARTER_START=
STARTER_READY=
# What a client does first, and what its answer has.
STARTER_FIRST='redis-server --version && ruby -e "puts 6 * 7"'
STARTER_ANSWER='42'
STARTER_HINT='npm run matrix'
