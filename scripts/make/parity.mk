# Networks, optimizers and whole updates against PyTorch: `make parity`. Not part of `make test`: it fetches 140 MB once,
# unless the environments of `make bench-peers` are there.
.PHONY: parity
parity: $(BUILD)/tests/oracle/dump_net $(BUILD)/tests/oracle/dump_optimizers \
        $(BUILD)/tests/oracle/dump_rollouts $(BUILD)/tests/oracle/dump_batches
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
