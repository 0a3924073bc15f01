-- A search within an author, a kind or a tag reads what that holds, not every document that has the words.
ALTER TABLE cn_search.post_search_documents ADD COLUMN tags bigint[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN cn_search.post_search_documents.tags IS
  'Every tag of one letter that has a value, as a number (tag_number in src/index/document_tags.hpp).';

-- The indexes of the table, or of one that is to take its place; `suffix` tells their names apart meanwhile.
--
-- Topics and tags stand in the same GIN index as tokens, so that a word within a topic is one scan. New entries wait in a
-- list of at most 4 MB that is merged at once: a quarter of the processor time of single inserts, for 3 to 5 ms more in a
-- search. Authors and kinds have indexes by time: the newest of them are read in order, up to the limit.
CREATE OR REPLACE FUNCTION cn_search.create_indexes(suffix text DEFAULT '') RETURNS void LANGUAGE plpgsql
SET maintenance_work_mem = '256MB' AS $$
BEGIN
  EXECUTE format('ALTER TABLE cn_search.post_search_documents%1$s
                    ADD CONSTRAINT post_search_documents_pkey%1$s PRIMARY KEY (event_id)', suffix);
  EXECUTE format('CREATE INDEX post_search_documents_tokens%1$s ON cn_search.post_search_documents%1$s
                    USING gin (tokens, topics, tags) WITH (fastupdate = on, gin_pending_list_limit = 4096)
                    WHERE deleted_at IS NULL', suffix);
  EXECUTE format('CREATE INDEX post_search_documents_time%1$s ON cn_search.post_search_documents%1$s
                    (created_at DESC, event_id DESC) WHERE deleted_at IS NULL', suffix);
  EXECUTE format('CREATE INDEX post_search_documents_author%1$s ON cn_search.post_search_documents%1$s
                    (pubkey, created_at DESC) WHERE deleted_at IS NULL', suffix);
  EXECUTE format('CREATE INDEX post_search_documents_kind%1$s ON cn_search.post_search_documents%1$s
                    (kind, created_at DESC) WHERE deleted_at IS NULL', suffix);
  -- By which index a search goes depends on how frequent its words and the rest of its filter are.
  EXECUTE format('ANALYZE cn_search.post_search_documents%1$s', suffix);
END $$;

-- Puts post_search_documents_next, with its indexes made, in the place of the table, and drops that.
CREATE OR REPLACE FUNCTION cn_search.swap_rebuilt() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  privilege record;
  index_name text;
  remark text := obj_description('cn_search.post_search_documents'::regclass);
BEGIN
  LOCK TABLE cn_search.post_search_documents IN ACCESS EXCLUSIVE MODE;
  FOR privilege IN
    SELECT a.privilege_type, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
    FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'cn_search.post_search_documents'::regclass AND a.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT %s ON cn_search.post_search_documents_next TO %s', privilege.privilege_type,
                   privilege.grantee);
  END LOOP;
  DROP TABLE cn_search.post_search_documents;
  ALTER TABLE cn_search.post_search_documents_next RENAME TO post_search_documents;
  -- The primary key's constraint is renamed with its index.
  FOR index_name IN
    SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = 'cn_search.post_search_documents'::regclass
  LOOP
    EXECUTE format('ALTER INDEX cn_search.%I RENAME TO %I', index_name, regexp_replace(index_name, '_next$', ''));
  END LOOP;
  EXECUTE format('COMMENT ON TABLE cn_search.post_search_documents IS %L', remark);
END $$;

-- Documents that are there have no tags yet. A rebuild gives them theirs, and the table the new indexes, while searches go
-- on; an empty table gets its indexes here.
DO $$
BEGIN
  IF EXISTS (SELECT FROM cn_search.post_search_documents) THEN
    UPDATE cn_relay.consumer_offsets
    SET state = 'rebuilding', rebuild_done = 0, rebuild_total = 0, rebuild_since = NULL WHERE consumer = 'index-v1';
  ELSE
    PERFORM cn_search.begin_rebuild();
    PERFORM cn_search.create_indexes('_next');
    PERFORM cn_search.swap_rebuilt();
  END IF;
END $$;
