-- The schema cn_search: what people can find, one document for an event, made from the log.
--
-- The program makes the tokens (src/index/tokens.hpp); SQL only stores and compares them. The table can be made anew at any
-- time from cn_relay.events: a rebuild fills post_search_documents_next and swaps it in.
CREATE SCHEMA cn_search;

-- ---------------------------------------------------------------------------------------------- tables

CREATE TABLE cn_search.post_search_documents (
  event_id text COLLATE "C" NOT NULL,
  pubkey text COLLATE "C" NOT NULL,
  kind integer NOT NULL,
  created_at bigint NOT NULL,
  ingested_at timestamptz NOT NULL,
  topics text[] COLLATE "C" NOT NULL,
  tags bigint[] NOT NULL DEFAULT '{}',
  tokens tsvector NOT NULL,
  title text,
  summary text,
  indexed_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz
);
COMMENT ON TABLE cn_search.post_search_documents IS
  'Public posts (kinds 1, 1111, 30023) as they are searched. A rebuild replaces the table: grants stay, views and foreign keys on it would stop the rebuild.';
COMMENT ON COLUMN cn_search.post_search_documents.ingested_at IS
  'As in cn_relay.events: (event_id, ingested_at) finds the event, and tells when it was purged.';
COMMENT ON COLUMN cn_search.post_search_documents.topics IS 'All topics of the event.';
COMMENT ON COLUMN cn_search.post_search_documents.tags IS
  'Every tag of one letter that has a value, as a number (tag_number in src/index/document_tags.hpp).';
COMMENT ON COLUMN cn_search.post_search_documents.tokens IS
  'Words and pairs of characters with positions; weight A in the title, B in the summary, D in the text. Empty when deleted.';
COMMENT ON COLUMN cn_search.post_search_documents.deleted_at IS
  'The event is no longer in effect: nothing of its text is kept, and no search finds it.';

-- ---------------------------------------------------------------------------------------------- functions

-- Makes the indexes of the table, or of one that is to replace it; `suffix` tells their names apart meanwhile.
--
-- Topics and tags stand in the same GIN index as tokens, so that a word within a topic is one scan. New entries wait in a
-- list of at most 4 MB that is merged at once: a quarter of the processor time of single inserts, for 3 to 5 ms more in a
-- search. Authors and kinds have indexes by time: the newest of them are read in order, up to the limit.
CREATE FUNCTION cn_search.create_indexes(suffix text DEFAULT '') RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET maintenance_work_mem = '256MB' AS $$
BEGIN
  IF suffix NOT IN ('', '_next') THEN
    RAISE EXCEPTION 'there is no table post_search_documents%', suffix USING ERRCODE = 'undefined_table';
  END IF;
  EXECUTE format('ALTER TABLE cn_search.post_search_documents%1$s
                    ADD CONSTRAINT post_search_documents_pkey%1$s PRIMARY KEY (event_id)', suffix);
  EXECUTE format('CREATE INDEX post_search_documents_tokens%1$s ON cn_search.post_search_documents%1$s
                    USING gin (tokens, topics, tags) WITH (fastupdate = on, gin_pending_list_limit = 4096)
                    WHERE deleted_at IS NULL', suffix);
  EXECUTE format('CREATE INDEX post_search_documents_time%1$s ON cn_search.post_search_documents%1$s
                    (created_at DESC) WHERE deleted_at IS NULL', suffix);
  EXECUTE format('CREATE INDEX post_search_documents_author%1$s ON cn_search.post_search_documents%1$s
                    (pubkey, created_at DESC) WHERE deleted_at IS NULL', suffix);
  EXECUTE format('CREATE INDEX post_search_documents_kind%1$s ON cn_search.post_search_documents%1$s
                    (kind, created_at DESC) WHERE deleted_at IS NULL', suffix);
  -- By which index a search goes depends on how frequent its words and the rest of its filter are.
  EXECUTE format('ANALYZE cn_search.post_search_documents%1$s', suffix);
END $$;

-- Grants on post_search_documents_next what is granted on the table.
CREATE FUNCTION cn_search.copy_grants() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  privilege record;
BEGIN
  FOR privilege IN
    SELECT a.privilege_type, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
    FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'cn_search.post_search_documents'::regclass AND a.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT %s ON cn_search.post_search_documents_next TO %s', privilege.privilege_type,
                   privilege.grantee);
  END LOOP;
END $$;

-- Makes an empty post_search_documents_next without indexes, for a rebuild to fill. Drops one that is there.
CREATE FUNCTION cn_search.begin_rebuild() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DROP TABLE IF EXISTS cn_search.post_search_documents_next;
  CREATE TABLE cn_search.post_search_documents_next
    (LIKE cn_search.post_search_documents INCLUDING DEFAULTS INCLUDING COMMENTS INCLUDING STORAGE);
  PERFORM cn_search.copy_grants();
END $$;

-- Replaces the table by post_search_documents_next, which has its indexes already. Grants and the comment stay.
CREATE FUNCTION cn_search.swap_rebuilt() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  index_name text;
  remark text := obj_description('cn_search.post_search_documents'::regclass);
BEGIN
  LOCK TABLE cn_search.post_search_documents IN ACCESS EXCLUSIVE MODE;
  PERFORM cn_search.copy_grants();
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

-- ---------------------------------------------------------------------------------------------- indexes

SELECT cn_search.create_indexes();

-- ---------------------------------------------------------------------------------------------- grants

-- They act with the rights of their owner, so only roles that were granted them may call them.
REVOKE EXECUTE ON FUNCTION cn_search.create_indexes(text), cn_search.copy_grants(), cn_search.begin_rebuild(),
  cn_search.swap_rebuilt() FROM PUBLIC;
