# The targets people type.
.PHONY: deps deps-test deps-memory deps-lint run test bench asan tsan ubsan valgrind lint release-check format clean help

deps:
	@scripts/install-packages run
deps-test:
	@scripts/install-packages test
deps-memory:
	@scripts/install-packages memory
deps-lint:
	@scripts/install-packages lint

EXPERIMENT ?= config/treasurehunt.json
JOBS ?= $(shell nproc)
# What pkg-config finds is read when make starts, so packages come first and then a make of its own.
REMAKE = @$(MAKE) --no-print-directory -j$(JOBS)

run: deps
	$(REMAKE) binaries
	@$(BUILD)/bin/ringctl run $(EXPERIMENT) $(ARGS)

# Executable scripts under tests/ named check-* or run are tests as well.
TEST_SCRIPTS = $(sort $(shell find tests -type f -executable \( -name 'check-*' -o -name run \) 2>/dev/null))
test: deps-test
	$(REMAKE) all tests
	@BUILD=$(BUILD) scripts/run-tests --jobs 2 $(TEST_BINARIES) $(TEST_SCRIPTS)

# The same programs under a sanitizer, each in a build of its own; runs that are killed at are shorter.
SAN_asan  := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SAN_ubsan := -fsanitize=undefined -fno-sanitize-recover=undefined
SAN_tsan  := -fsanitize=thread
asan ubsan tsan: deps-test
	$(REMAKE) BUILD=build/$@ SANITIZE='$(SAN_$@)' CFLAGS='-O1 -g' all tests
	@BUILD=build/$@ TSAN_OPTIONS='halt_on_error=1 suppressions=$(CURDIR)/scripts/tsan-suppressions' \
	    RM_TEST_STEPS=12000 scripts/run-tests --jobs 2 --timeout 1800 \
	    $(patsubst $(BUILD)/%,build/$@/%,$(TEST_BINARIES))

# Reads of what nobody wrote, which no sanitizer of gcc's finds: the same programs under valgrind, whose processor has
# AVX2 and no more, so that every one is held to it. The emulated device may be touched by anybody: what it keeps the
# host from is valgrind's to say here. It is of capability 8.0, whose workspace of products, which every backend fills, is
# a quarter of that of newer ones.
# Without the programs that need that; with fewer repetitions (tests/support/effort.h). Without those, too, whose
# subject valgrind does not have: filters of system calls, descriptors of processes, the heap of the C library, counts
# of instructions, and long double with more bits than double. Without the search for leaks at the end, which goes
# through all addresses of the emulated device and takes longer than most tests: AddressSanitizer's runs find leaks.
VALGRIND_WITHOUT := cuda/test_emulation_streams unit/actor/worlds/test_sandbox unit/daemon/test_child \
                    unit/daemon/test_heap unit/actor/worlds/test_world_trig unit/daemon/web/test_guard
VALGRIND := valgrind --quiet --leak-check=no --error-exitcode=99 --exit-on-first-error=no --max-threads=2000 --soname-synonyms=somalloc=nouserintercepts
VALGRIND_ONLY := $(or $(ONLY),unit/% memory/% cuda/%)
VALGRIND_TESTS = $(filter-out $(VALGRIND_WITHOUT:%=$(BUILD)/tests/%), \
                 $(filter $(VALGRIND_ONLY:%=$(BUILD)/tests/%),$(TEST_BINARIES)))
valgrind: deps-memory
	$(REMAKE) all tests
	@BUILD=$(BUILD) RM_EMULATED_GUARD=0 RM_EMULATED_CAPABILITY=80 RM_TEST_LITTLE=1 RM_TEST_STEPS=12000 RM_TEST_STRIDE=61 \
	    scripts/run-tests --jobs 2 --timeout 1800 --under '$(VALGRIND)' $(VALGRIND_TESTS)

# One at a time, pinned: `make bench ONLY=ring.bandwidth`, or a prefix: ONLY='ring.*'.
bench: deps
	$(REMAKE) all benches
	@BUILD=$(BUILD) scripts/bench/run $(ONLY)

# README and docs from what bench, bench-peers, learn and histories measured; the first two leave it in build/.
.PHONY: figures
figures:
	@mkdir -p docs/figures
	@for file in bench.json bench-peers.json; do \
	    if [ -e $(BUILD)/$$file ]; then cp $(BUILD)/$$file docs/figures/; fi; done
	@scripts/bench/figures

# tests/model/*.h are Spin's, not C.
SOURCES_C = $(filter-out tests/model/%,$(sort $(shell git ls-files '*.c' '*.h' 2>/dev/null)))
LINT_FLAGS = -std=c11 -D_GNU_SOURCE -I. -Iactor $(PROLOG_CFLAGS) -DRM_ISA=v3 -DRM_HAVE_SYSTEMD -DRM_HAVE_SECCOMP -DRM_VERSION='"0"'
# readdir: its reentrant form is deprecated; streams here are never shared.
CPPCHECK_OFF := missingIncludeSystem readdirCalled
lint: deps-lint
	@echo "clang-format"; clang-format --dry-run -Werror $(SOURCES_C)
	@echo "cppcheck"; mkdir -p $(BUILD)/cppcheck; \
	    cppcheck --quiet --error-exitcode=1 --inline-suppr -j$(JOBS) --cppcheck-build-dir=$(BUILD)/cppcheck \
	    --enable=warning,portability $(CPPCHECK_OFF:%=--suppress=%) --library=posix \
	    $(patsubst -std=%,--std=%,$(LINT_FLAGS)) $(filter %.c,$(SOURCES_C))
	@echo "clang-tidy"; printf '%s\n' $(filter-out tests/fuzz/%,$(filter %.c,$(SOURCES_C))) | \
	    BUILD=$(BUILD) xargs -P$(JOBS) -n8 scripts/tidy $(LINT_FLAGS) --
	@echo "rooms"; scripts/rooms
	@echo "words"; scripts/words
	@echo "shellcheck"; git ls-files scripts tests .ci | xargs grep -lE '^#!.*(ba)?sh$$' | xargs shellcheck -x
	@echo "lint: clean"

# What a release has passed, one after the other; the first that fails ends it.
RELEASE_RUNS := lint test asan tsan valgrind
release-check:
	@for target in $(RELEASE_RUNS); do \
	    echo "release-check: make $$target"; $(MAKE) --no-print-directory $$target || exit 1; done

format:
	@clang-format -i $(SOURCES_C)

clean:
	@rm -rf build

help:
	@echo "make run        install packages, build, train config/treasurehunt.json"
	@echo "                (EXPERIMENT=file.json ARGS='--set key=value')"
	@echo "make test       install packages, build, run every test"
	@echo "make            build everything into $(BUILD)/"
	@echo "make bench      benchmarks into $(BUILD)/bench.json (ONLY=name for one)"
	@echo "make explain-check   how well ringctl explain predicts rates (a quiet host; two and a half hours)"
	@echo "make figures    README and docs from what bench, bench-peers, learn and histories measured"
	@echo "make models     model-check the shared-memory protocols"
	@echo "make asan, ubsan, tsan   the tests under a sanitizer"
	@echo "make valgrind   those of units, memory and the emulated device under valgrind (some: ONLY='unit/daemon/%')"
	@echo "make lint       clang-format, cppcheck, clang-tidy, the order of the rooms, shellcheck"
	@echo "make release-check   what a release has passed: lint, test, asan, tsan, valgrind (hours)"
	@echo "make learn      learning table over seeds, in free and sequential mode (hours); learn-long: its longest rows"
	@echo "make goodhart   the table and the plots of docs/goodhart.md"
	@echo "make histories  three policies distilled from histories, for docs/histories.md"
	@echo "make parity     compare networks and updates with PyTorch (in a throw-away environment)"
	@echo "make python-worlds  environments of Gymnasium and PettingZoo in workers beside themselves (in a throw-away one)"
	@echo "make python-training  trains in each of them for a minute"
	@echo "make trackers   the readers for Weights & Biases and MLflow (in a throw-away one)"
	@echo "make formats    read policy files with other programs (in a throw-away environment)"
	@echo "make fuzz       fuzz configuration, control protocol, checkpoints, ring attach (FUZZ_SECONDS=)"
	@echo "make soak       two hours of real experiments; is memory flat? (SOAK_SECONDS=)"
	@echo "make faults     kill whole runs at every fault site; are they resumed to the bit? (SITES=)"
	@echo "make fuzz-worlds  worlds that write random words, under AddressSanitizer (WORLDS_SECONDS=)"
	@echo "make kill-soak  kill random processes of real experiments (KILLS=); is it harmless?"
	@echo "make chaos      disturb runs in lockstep at random (CHAOS_SECONDS=); do they end with the same bits?"
	@echo "make generated  docs/configuration.md, after a table has changed"
	@echo "make install, uninstall   DESTDIR= PREFIX=/usr/local"
	@echo "make deb        a Debian package of what is committed"
	@echo "make wheel      a package for Python, with the programs inside"
	@echo "make test-systemd   the package under a real systemd, in a container (needs root)"
	@echo "make test-vm    the same on a machine of its own, in qemu, with control groups of version 2 (needs root)"
	@echo "make bench-peers    the same tasks with other libraries (in a throw-away environment)"
	@echo "make cuda       the CUDA plugin (needs nvcc; NVCC= its path, CUDA_ARCH='80 90 100 120')"
	@echo "make cuda-emulated  the same sources on an emulation of CUDA, for tests (needs no GPU, no nvcc)"
	@echo "                scripts/gpu-check tries all of it on a GPU"
