// node run.mjs URL JOBS: how many no-op jobs a second graphile-worker settles; prints the number.
// The settings are the fastest that its documentation offers: a local queue and batched completion.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';

const [url, count] = [process.argv[2], Number(process.argv[3])];
const logger = new Logger(() => (level, message) => {
  if (level === 'error' || level === 'warning') console.error(message);
});

const utils = await makeWorkerUtils({ connectionString: url, logger });
await utils.migrate();
await utils.withPgClient((client) =>
  client.query("SELECT graphile_worker.add_job('noop', json_build_object('n', n)) FROM generate_series(1, $1::int) n", [
    count,
  ]),
);

let done = 0;
let finish;
const finished = new Promise((resolve) => (finish = resolve));
const began = process.hrtime.bigint();
const runner = await run({
  connectionString: url,
  logger,
  noHandleSignals: true,
  preset: {
    worker: {
      concurrentJobs: 24,
      maxPoolSize: 25,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  },
  taskList: {
    noop: () => {
      if (++done === count) finish();
    },
  },
});
await finished;
// Settled is what counts, not begun: the rows are gone when their completion is committed.
for (;;) {
  const left = await utils.withPgClient((client) => client.query('SELECT 1 FROM graphile_worker._private_jobs LIMIT 1'));
  if (left.rowCount === 0) break;
}
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
console.log((count / seconds).toFixed(0));
await runner.stop();
await utils.release();
