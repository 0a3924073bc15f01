# The two commands are `make up` and `make test`; `make help` lists the rest.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help up build test quick package bench format lint tsan fuzz soak clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: ## install what is missing, build, start everything, say what to open (ARGS="--server.listen …")
	@scripts/setup build run
	@$(MAKE) --no-print-directory build
	@exec build/todoke up $(ARGS)

build: ## build the release binary: build/todoke
	@scripts/setup build
	@scripts/build release todoke
	@ln -sfn release/src/app/todoke build/todoke

test: ## build and run every test, format and lint check; ends with `N passed, M failed`
	@scripts/setup build run test
	@scripts/test

quick: ## build and run the unit and protocol tests: a few minutes once the compiler's cache is warm
	@scripts/setup build run test
	@scripts/test quick

package: build ## make a Debian package of the release binary: build/todoke_*.deb
	@scripts/setup package
	@scripts/package

bench: build ## run the benchmarks; they print ratios
	@scripts/setup run
	@scripts/bench

format: ## format all source files
	@scripts/setup test
	@scripts/format --fix

lint: ## clang-tidy over the whole tree, and the format check
	@scripts/setup build test
	@scripts/format
	@scripts/build asan
	@scripts/lint --all

tsan: ## run the suites with threads under ThreadSanitizer
	@scripts/setup build run test
	@scripts/test tsan

fuzz: ## run every fuzzer for a minute (SECONDS_EACH=60)
	@scripts/setup build fuzz
	@scripts/fuzz $(SECONDS_EACH)

soak: ## the log and orders under random load and kills, seeds printed (SECONDS_EACH=60 RUNS=300)
	@scripts/setup build run test
	@scripts/test soak $(or $(SECONDS_EACH),60) $(or $(RUNS),300)

clean: ## remove everything that was built
	rm -rf build
