-- What `todoke orders reconcile` wants to know of a broker that speaks FIX. The worker that has the session asks the broker
-- and writes down what it says; the command takes its rows away when it has read them, and the worker sweeps what is left.

CREATE TABLE orders.fix_questions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session text COLLATE "C" NOT NULL,
  cl_ord_id text COLLATE "C" NOT NULL,
  outbox_id bigint NOT NULL,
  asked_by text COLLATE "C" NOT NULL,
  asked_at timestamptz NOT NULL DEFAULT now(),
  answered_at timestamptz,
  answer text COLLATE "C" CHECK (answer IN ('found', 'not_found', 'unknown')),
  is_taken boolean,
  executed_qty text COLLATE "C",
  message text,
  CHECK ((answer IS NULL) = (answered_at IS NULL))
);
COMMENT ON COLUMN orders.fix_questions.asked_by IS 'One run of the command.';
COMMENT ON COLUMN orders.fix_questions.answer IS 'unknown: the broker could not be asked; message says why.';
COMMENT ON COLUMN orders.fix_questions.is_taken IS 'found: whether the broker took the order, or else rejected it.';
COMMENT ON COLUMN orders.fix_questions.executed_qty IS 'found: what the broker counts, a decimal as text.';
