# What tests of slow disks have loaded into the programs under test: calls that take long, or fail.
$(BUILD)/tests/crash/slow_disk.so: tests/crash/data/slow_disk.c tests/crash/slow_disk.h
	@mkdir -p $(@D)
	@echo "  SHIM    $@"
	@$(CC) -std=c11 -D_GNU_SOURCE -I. -O1 -g $(WARN) -fPIC -shared -o $@ $<
$(BUILD)/tests/crash/test_slow_disk $(BUILD)/tests/protocol/test_held_disk: $(BUILD)/tests/crash/slow_disk.so

# A limit of threads, by a test's own word.
$(BUILD)/tests/crash/few_threads.so: tests/crash/data/few_threads.c
	@mkdir -p $(@D)
	@echo "  SHIM    $@"
	@$(CC) -std=c11 -D_GNU_SOURCE -I. -O1 -g $(WARN) -fPIC -shared -o $@ $<
tests: $(BUILD)/tests/crash/few_threads.so

# Whole runs killed at every fault site, in a build that has them.
.PHONY: faults
faults: deps
	$(REMAKE) FAULT=1 BUILD=$(BUILD)/fault binaries
	@BUILD=$(BUILD)/fault tests/crash/fault-matrix $(SITES)

# Worlds that write random words over all that they can, for ten minutes under AddressSanitizer (WORLDS_SECONDS=).
WORLDS_SECONDS ?= 600
.PHONY: fuzz-worlds
fuzz-worlds: deps
	$(REMAKE) BUILD=$(BUILD)/asan SANITIZE='$(SAN_asan)' CFLAGS='-O1 -g' binaries $(BUILD)/asan/tests/worlds/rogue.so
	@BUILD=$(BUILD)/asan tests/crash/check-fuzz-worlds --seconds $(WORLDS_SECONDS)
