# Networks, optimizers and whole updates against PyTorch: `make parity`. Not part of `make test`: it fetches 140 MB once,
# unless the environments of `make bench-peers` are there.
# `make test` builds the programs, so that a change that breaks them is seen.
DUMPS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/oracle/dump_*.c)))
tests: $(DUMPS)

.PHONY: parity
parity: $(DUMPS)
	@tests/oracle/parity $(BUILD) || { code=$$?; [ $$code -eq 77 ]; }

# Environments that nobody here wrote, in workers and beside themselves, in a throw-away environment.
.PHONY: python-worlds
python-worlds: $(BUILD)/tests/oracle/dump_worlds
	@BUILD=$(BUILD) tests/oracle/check-python-worlds --install || { code=$$?; [ $$code -eq 77 ]; }

# A minute of training in each of them, and a table.
.PHONY: python-training
python-training: $(BUILD)/tests/oracle/dump_worlds binaries
	@BUILD=$(BUILD) tests/oracle/check-python-worlds --install --train 60 || { code=$$?; [ $$code -eq 77 ]; }

# The readers of metrics.exec with the trackers that they are for, in a throw-away environment.
.PHONY: trackers
trackers: binaries
	@BUILD=$(BUILD) tests/oracle/check-trackers --install || { code=$$?; [ $$code -eq 77 ]; }
