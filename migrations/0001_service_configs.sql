-- The database's layer of the configuration: keys that an operator changes while the node runs. One row for each service; a
-- change counts the version up, so that a reader sees whether it has the latest and a writer can't overwrite another's change.
CREATE SCHEMA cn_admin;

CREATE TABLE cn_admin.service_configs (
  service    text PRIMARY KEY,
  version    bigint NOT NULL DEFAULT 1 CHECK (version > 0),
  config     jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(config) = 'object'),
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);

COMMENT ON TABLE cn_admin.service_configs IS 'Live configuration, one row for each service';
COMMENT ON COLUMN cn_admin.service_configs.version IS 'Counts up with every change';
COMMENT ON COLUMN cn_admin.service_configs.config IS 'Keys and values; only live keys are taken';
COMMENT ON COLUMN cn_admin.service_configs.updated_by IS 'Who made the last change';
