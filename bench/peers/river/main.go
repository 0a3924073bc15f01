// river URL JOBS: how many no-op jobs a second River settles; prints the number.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type noopArgs struct {
	N int `json:"n"`
}

func (noopArgs) Kind() string { return "noop" }

type noopWorker struct {
	river.WorkerDefaults[noopArgs]
}

func (noopWorker) Work(context.Context, *river.Job[noopArgs]) error { return nil }

const insertMost = 1_000

func run(ctx context.Context, url string, count int) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &noopWorker{})
	client, err := river.NewClient(driver, &river.Config{
		// As often as it may: by default it fetches ten times a second at most.
		FetchCooldown: time.Millisecond,
		Logger:        slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 500}},
		Workers:       workers,
	})
	if err != nil {
		return err
	}
	for inserted := 0; inserted < count; inserted += insertMost {
		batch := make([]river.InsertManyParams, 0, insertMost)
		for n := inserted; n < min(count, inserted+insertMost); n++ {
			batch = append(batch, river.InsertManyParams{Args: noopArgs{N: n}})
		}
		if _, err = client.InsertManyFast(ctx, batch); err != nil {
			return err
		}
	}
	completed, cancel := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: count,
		Kinds:    []river.EventKind{river.EventKindJobCompleted},
	})
	defer cancel()
	began := time.Now()
	if err = client.Start(ctx); err != nil {
		return err
	}
	for done := 0; done < count; done++ {
		<-completed
	}
	fmt.Printf("%.0f\n", float64(count)/time.Since(began).Seconds())
	return client.Stop(ctx)
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "river URL JOBS")
		os.Exit(2)
	}
	count, err := strconv.Atoi(os.Args[2])
	if err == nil {
		err = run(context.Background(), os.Args[1], count)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
