# Long runs, each a target of its own. `tests/soak/soak --help` states the rule of what counts as flat.
SOAK_SECONDS ?= 7200
.PHONY: soak
soak: deps
	$(REMAKE) binaries
	@BUILD=$(BUILD) tests/soak/soak --seconds $(SOAK_SECONDS) --out $(BUILD)/soak $(SOAK_ARGS)
