# Long runs, each a target of its own. `tests/soak/soak --help` states the rule of what counts as flat.
SOAK_SECONDS ?= 7200
.PHONY: soak
soak: deps
	$(REMAKE) binaries
	@BUILD=$(BUILD) tests/soak/soak --seconds $(SOAK_SECONDS) --out $(BUILD)/soak $(SOAK_ARGS)

# Random processes killed while experiments train; `tests/soak/kill-soak --help` states what must hold.
KILLS ?= 200
.PHONY: kill-soak
kill-soak: deps
	$(REMAKE) binaries
	@BUILD=$(BUILD) tests/soak/kill-soak --kills $(KILLS) --out $(BUILD)/kill-soak $(SOAK_ARGS)

# Runs in lockstep disturbed at random, to the bits of undisturbed ones; `tests/soak/chaos --help` says by what.
CHAOS_SECONDS ?= 600
.PHONY: chaos
chaos: deps
	$(REMAKE) binaries
	@BUILD=$(BUILD) tests/soak/chaos --seconds $(CHAOS_SECONDS) $(CHAOS_ARGS)
