-- A base backup that was put in the place of its cluster has the same system identifier and timeline. Postgres leaves the
-- label of the backup that a cluster was started from beside it: another label is another backup.
ALTER TABLE cn_relay.log_identity ADD COLUMN backup text;
COMMENT ON COLUMN cn_relay.log_identity.backup IS 'backup_label.old of the cluster; NULL where there is none or we may not read it.';

-- True: the sequence was moved.
CREATE OR REPLACE FUNCTION cn_relay.check_log_identity() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  label_bytes_max constant bigint := 10000;
  now_system text;
  now_timeline integer;
  now_backup text;
  known cn_relay.log_identity;
BEGIN
  PERFORM cn_relay.lock_log();
  SELECT system_identifier INTO now_system FROM pg_control_system();
  SELECT timeline_id INTO now_timeline FROM pg_control_checkpoint();
  BEGIN
    now_backup := pg_read_file('backup_label.old', 0, label_bytes_max, true);
  EXCEPTION WHEN insufficient_privilege THEN
    -- The user of a configured database need not be allowed to.
  END;
  SELECT * INTO known FROM cn_relay.log_identity;
  IF NOT FOUND THEN
    INSERT INTO cn_relay.log_identity (system_identifier, timeline, backup)
      VALUES (now_system, now_timeline, now_backup);
    RETURN false;
  END IF;
  IF known.system_identifier = now_system AND known.timeline = now_timeline
     AND (now_backup IS NULL OR now_backup IS NOT DISTINCT FROM known.backup) THEN
    RETURN false;
  END IF;
  UPDATE cn_relay.log_identity SET system_identifier = now_system, timeline = now_timeline, backup = now_backup;
  PERFORM setval('cn_relay.events_outbox_seq', (SELECT last_value FROM cn_relay.events_outbox_seq) + 1000000);
  RETURN true;
END $$;
