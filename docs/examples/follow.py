#!/usr/bin/env python3
"""Follows the log and keeps the posts that are in effect in an SQLite file.

    todoke consumers add copy               prints the connection string URL
    python3 follow.py URL copy copy.sqlite  Ctrl-C ends it

Needs psycopg 3 (Debian: python3-psycopg).
"""
import select
import sqlite3
import sys
import time

import psycopg

BATCH_MAX = 500
POLL_SECONDS = 1.0  # how late a row may be when its notification gets lost

TABLES = """
CREATE TABLE IF NOT EXISTS posts (
  topic_id TEXT, event_id TEXT, author TEXT, content TEXT, created_at INTEGER, PRIMARY KEY (topic_id, event_id));
CREATE TABLE IF NOT EXISTS journal (
  position INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER UNIQUE, op TEXT, event_id TEXT, topic_id TEXT);
"""

OFFSET = "SELECT last_seq, state, paused FROM cn_relay.consumer_offsets WHERE consumer = %s FOR UPDATE"
ROWS = """
SELECT o.seq, o.op, o.event_id, o.topic_id, o.kind, e.pubkey, e.content, e.created_at, e.non_public
FROM cn_relay.events_outbox o
LEFT JOIN cn_relay.events e ON e.event_id = o.event_id AND e.ingested_at = o.ingested_at
WHERE o.seq > %s ORDER BY o.seq LIMIT %s
"""
MOVE = "UPDATE cn_relay.consumer_offsets SET last_seq = %s, updated_at = now() WHERE consumer = %s"


def apply(store, row):
    """The effect of one row. It may be asked for twice: after a crash between the two commits, and in a replay."""
    seq, op, event_id, topic_id, kind, author, content, created_at, non_public = row
    store.execute(
        "INSERT OR IGNORE INTO journal (seq, op, event_id, topic_id) VALUES (?, ?, ?, ?)", (seq, op, event_id, topic_id)
    )
    if op == "delete":
        store.execute("DELETE FROM posts WHERE topic_id = ? AND event_id = ?", (topic_id, event_id))
    elif kind == 1 and author is not None and not non_public:  # without an author: the event is purged already
        store.execute(
            "INSERT OR REPLACE INTO posts VALUES (?, ?, ?, ?, ?)", (topic_id, event_id, author, content, created_at)
        )


def take_batch(log, store, me):
    """The effects first, the offset after them. The lock on the offset keeps a second instance out meanwhile."""
    with log.transaction():
        offset = log.execute(OFFSET, (me,)).fetchone()
        if offset is None:
            sys.exit(f"there is no consumer {me}: todoke consumers list")
        last, state, paused = offset
        if paused:
            return 0
        if state == "needs_rebuild":
            sys.exit("rows that were not read yet have left the log: start again from cn_relay.effective_events")
        rows = log.execute(ROWS, (last, BATCH_MAX)).fetchall()
        if rows:
            with store:
                for row in rows:
                    apply(store, row)
            log.execute(MOVE, (rows[-1][0], me))
    return len(rows)


def follow(url, me, store):
    with psycopg.connect(url, autocommit=True) as log:
        log.execute("LISTEN cn_relay_outbox")
        while True:
            if take_batch(log, store, me) == 0:
                select.select([log.fileno()], [], [], POLL_SECONDS)


def main():
    url, me, path = sys.argv[1:]
    store = sqlite3.connect(path)
    store.executescript(TABLES)
    while True:
        try:
            follow(url, me, store)
        except psycopg.OperationalError as error:
            print(f"{error}; trying again", file=sys.stderr)
            time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
