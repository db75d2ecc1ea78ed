# `make fuzz`: every tests/fuzz/fuzz_*.c under libFuzzer with ASan and UBSan, each for FUZZ_SECONDS
# (`make fuzz FUZZ_SECONDS=600`: ten minutes each).
# Inputs found are kept in build/fuzz/corpus/NAME; those worth keeping for ever belong into
# tests/fuzz/corpus/NAME. A crash leaves its input in build/fuzz/ and fails the target.
FUZZ_SECONDS ?= 60
FUZZ_CLANG      ?= clang
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))

# Which rooms a target needs, in the order of their link; all of them unless said here.
FUZZ_ROOMS_config := config shm
FUZZ_ALSO_config  := config
FUZZ_ROOMS_control := daemon config shm
FUZZ_ROOMS_archive := shm
FUZZ_ROOMS_attach  := learner shm
FUZZ_ROOMS_manifest := daemon session config shm
FUZZ_ROOMS_safetensors := net config shm

fuzz_libs = $(if $(FUZZ_ROOMS_$(1)),$(foreach r,$(FUZZ_ROOMS_$(1)),$(call lib,$(r))),$(LINK_ALL))

define fuzz_rules
$(BUILD)/fuzz_$(1): $(BUILD)/obj/tests/fuzz/fuzz_$(1).o $(call fuzz_libs,$(1))
	@mkdir -p $$(@D)
	@echo "  LINK    $$@"
	@$$(CC) $$(ALL_CFLAGS) -fsanitize=fuzzer -rdynamic -o $$@ $$< $(call fuzz_libs,$(1)) $$(LIBS)

.PHONY: fuzz-$(1)
fuzz-$(1): deps-lint
	$$(REMAKE) BUILD=build/fuzz CC=$$(FUZZ_CLANG) CFLAGS='-O1 -g -Wno-pass-failed' \
	    SANITIZE='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer' \
	    build/fuzz/fuzz_$(1)
	@mkdir -p build/fuzz/corpus/$(1)
	build/fuzz/fuzz_$(1) -max_total_time=$$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
	    -max_len=8192 -print_final_stats=1 -artifact_prefix=build/fuzz/crash-$(1)- \
	    build/fuzz/corpus/$(1) $$(wildcard tests/fuzz/corpus/$(1)) $$(FUZZ_ALSO_$(1))
endef
$(foreach n,$(FUZZ_NAMES),$(eval $(call fuzz_rules,$(n))))

.PHONY: fuzz
fuzz: $(addprefix fuzz-,$(FUZZ_NAMES))
