#!/usr/bin/env bash
# The Postgres of a test run.
#
#   postgres.sh start FILE   starts a server, unless the one named in FILE runs, and writes its folder to FILE
#   postgres.sh stop FILE    stops it and removes the folder
#
# The server listens on a Unix socket in its folder only, and does not sync: it need not survive a crash. The folder stands in
# /tmp because Postgres does not run as root and its user must be able to reach it.
set -euo pipefail

command=${1:?start or stop}
record=${2:?the file that names the folder of the server}

newest_bin() {
  local version
  version=$(ls /usr/lib/postgresql 2>/dev/null | sort -n | tail -1)
  if [[ -z $version || $version -lt 15 ]]; then
    echo "Postgres 15 or newer is not installed under /usr/lib/postgresql" >&2
    exit 1
  fi
  echo "/usr/lib/postgresql/$version/bin"
}

as_server_user() {
  if [[ $(id -u) -eq 0 ]]; then
    (cd / && runuser -u postgres -- "$@")
  else
    "$@"
  fi
}

bin=$(newest_bin)

running() {
  [[ -s $record ]] && as_server_user "$bin/pg_ctl" status -D "$(<"$record")/data" >/dev/null 2>&1
}

start() {
  running && return
  stop
  local folder
  folder=$(as_server_user mktemp -d /tmp/todoke-test-pg.XXXXXX)
  mkdir -p "$(dirname "$record")"
  echo "$folder" >"$record"
  as_server_user "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >/dev/null
  as_server_user "$bin/pg_ctl" start -w -t 60 -D "$folder/data" -l "$folder/log" -o "\
    -k $folder -c listen_addresses='' -c fsync=off -c synchronous_commit=off -c full_page_writes=off \
    -c max_connections=200 -c shared_buffers=128MB -c autovacuum=off -c max_prepared_transactions=0" >/dev/null
}

stop() {
  [[ -s $record ]] || return 0
  local folder
  folder=$(<"$record")
  if running; then as_server_user "$bin/pg_ctl" stop -w -m immediate -D "$folder/data" >/dev/null; fi
  # Only what start made.
  if [[ $folder == /tmp/todoke-test-pg.* ]]; then rm -rf "$folder"; fi
  rm -f "$record"
}

case $command in
  start) start ;;
  stop) stop ;;
  *)
    echo "start or stop, not $command" >&2
    exit 1
    ;;
esac
