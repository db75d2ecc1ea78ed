# Ringmaster. `make run` installs what is needed, builds and trains the main experiment; `make test`
# runs every test. `make help` lists the rest. Files are found by where they stand: a new .c file in a
# room belongs to that room's library, main.c in a room is its executable, tests/**/test_*.c is a test
# program, scripts/bench/bench_*.c a benchmark. A file named *.isa.c is compiled once per instruction
# set (RM_ISA = v2, v3, v4) and chosen at run time.

BUILD   ?= build
CC      ?= gcc
SANITIZE ?=
FAULT   ?=
PREFIX  ?= /usr/local
DESTDIR ?=
VERSION := 0.1.0

# Before the first `make deps` there may be no pkg-config: then only targets that need none work.
PKGS    := jansson libuv ncursesw libsystemd
ifneq ($(filter all binaries tests benches examples install,$(or $(MAKECMDGOALS),all)),)
ifneq ($(shell command -v $(firstword $(CC)) >/dev/null && pkg-config --exists jansson libuv 2>/dev/null && echo 1),1)
$(error Compiler or libraries are missing: `make deps` installs them, as root or with sudo)
endif
endif
HAVE_SYSTEMD := $(shell pkg-config --exists libsystemd 2>/dev/null && echo 1)
HAVE_SECCOMP := $(shell pkg-config --exists libseccomp 2>/dev/null && echo 1)
PKG_CFLAGS := $(shell pkg-config --cflags jansson libuv 2>/dev/null)
WARN    := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
           -Wvla -Wformat=2
CFLAGS  ?= -O2 -g
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -I. $(WARN) -fno-math-errno -fno-strict-aliasing -pthread \
           -fvisibility=hidden -fPIC -DRM_VERSION='"$(VERSION)"' \
           $(if $(HAVE_SYSTEMD),-DRM_HAVE_SYSTEMD) $(if $(HAVE_SECCOMP),-DRM_HAVE_SECCOMP) \
           $(if $(FAULT),-DRM_FAULT_SITES) \
           $(PKG_CFLAGS) $(CFLAGS) $(SANITIZE)
BASE_ARCH := -march=x86-64-v2
LIBS    := -ljansson -luv -llz4 -lxxhash -lncursesw -ltinfo $(if $(HAVE_SYSTEMD),-lsystemd) $(if $(HAVE_SECCOMP),-lseccomp) -ldl -lm -lpthread

# --- rooms ---------------------------------------------------------------------------------------
ROOM_shm     := shm shm/base
ROOM_config  := config
ROOM_session := shm/session
ROOM_net     := learner/net learner/net/steps learner/backend
ROOM_worlds  := actor/worlds actor/worlds/builtin actor/worlds/bridges
ROOM_learner := learner learner/algo
ROOM_actor   := actor
ROOM_daemon  := daemon
ROOM_ctl     := daemon/ctl
ROOM_solo    := daemon/solo
# Each stands on those behind it alone (scripts/rooms), which is their order for every link.
ROOMS := ctl solo daemon actor learner worlds net session config shm

find_sources = $(filter-out %/main.c,$(foreach d,$(1),$(sort $(wildcard $(d)/*.c))))
objects_of = $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out %.isa.c,$(1))) \
             $(foreach isa,v2 v3 v4,$(patsubst %.isa.c,$(BUILD)/obj/%.$(isa).o,$(filter %.isa.c,$(1))))
lib = $(BUILD)/lib/librm_$(1).a

BINARIES := $(BUILD)/bin/ringmasterd $(BUILD)/bin/ringctl $(BUILD)/bin/ringmaster-actor \
            $(BUILD)/bin/ringmaster-learner $(BUILD)/bin/ringmaster-solo

.PHONY: all
all: $(BINARIES) examples

.PHONY: binaries
binaries: $(BINARIES)

define room_rules
$(call lib,$(1)): $$(call objects_of,$$(call find_sources,$$(ROOM_$(1))))
	@mkdir -p $$(@D)
	@rm -f $$@
	@$(AR) rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room_rules,$(r))))

LINK_ALL := $(foreach r,$(ROOMS),$(call lib,$(r)))

$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  CC      $<"
	@$(CC) $(ALL_CFLAGS) $(BASE_ARCH) -MMD -MP -c $< -o $@

# -O3 and reassociation-free vectorising; the suffix macro keeps the three copies apart. Under a sanitizer -O1: -O3 is
# minutes of compiling there.
ISA_LEVEL := $(if $(SANITIZE),-O1,-O3)
define isa_rule
$(BUILD)/obj/%.$(1).o: %.isa.c Makefile
	@mkdir -p $$(@D)
	@echo "  CC      $$< ($(1))"
	@$(CC) $$(ALL_CFLAGS) $(ISA_LEVEL) -fno-trapping-math -march=x86-64-$(1) -DRM_ISA=$(1) -MMD -MP -c $$< -o $$@
endef
$(foreach isa,v2 v3 v4,$(eval $(call isa_rule,$(isa))))

link = @mkdir -p $(@D); echo "  LINK    $@"; $(CC) $(ALL_CFLAGS) -rdynamic -o $@ $(1) $(LINK_ALL) $(LIBS) $(2)

$(BUILD)/bin/ringmasterd: $(BUILD)/obj/daemon/main.o $(LINK_ALL)
	$(call link,$<)
$(BUILD)/bin/ringctl: $(BUILD)/obj/daemon/ctl/main.o $(LINK_ALL)
	$(call link,$<)
$(BUILD)/bin/ringmaster-solo: $(BUILD)/obj/daemon/solo/main.o $(LINK_ALL)
	$(call link,$<)
$(BUILD)/bin/ringmaster-actor: $(BUILD)/obj/actor/main.o $(LINK_ALL)
	$(call link,$<)
$(BUILD)/bin/ringmaster-learner: $(BUILD)/obj/learner/main.o $(LINK_ALL)
	$(call link,$<)

# --- tests ---------------------------------------------------------------------------------------
TEST_SOURCES := $(sort $(shell find tests -name 'test_*.c' 2>/dev/null))
TEST_BINARIES := $(patsubst tests/%.c,$(BUILD)/tests/%,$(TEST_SOURCES))
# An archive, so that a test links only the helpers it uses.
TEST_SUPPORT := $(BUILD)/lib/librm_test_support.a
$(TEST_SUPPORT): $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard tests/support/*.c)))
	@mkdir -p $(@D)
	@rm -f $@
	@$(AR) rcs $@ $^

$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(TEST_SUPPORT) $(LINK_ALL)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CC) $(ALL_CFLAGS) -rdynamic -o $@ $< $(TEST_SUPPORT) $(LINK_ALL) -lcmocka $(LIBS)

.PHONY: tests
tests: $(TEST_BINARIES)

# --- benchmarks ----------------------------------------------------------------------------------
BENCH_BINARIES := $(patsubst scripts/bench/%.c,$(BUILD)/bench/%,$(sort $(wildcard scripts/bench/bench_*.c)))
$(BUILD)/bench/%: $(BUILD)/obj/scripts/bench/%.o $(BUILD)/obj/scripts/bench/report.o $(LINK_ALL)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CC) $(ALL_CFLAGS) -rdynamic -o $@ $< $(BUILD)/obj/scripts/bench/report.o $(LINK_ALL) $(LIBS)

.PHONY: benches
benches: $(BENCH_BINARIES)
# Tests build the benchmarks: one that no longer compiles fails there, and tests/cuda/check-gpu-check runs two.
tests: benches

# --- worked example: a user's world, built out of tree --------------------------------------------
EXAMPLES := $(patsubst scripts/examples/%.c,$(BUILD)/examples/%.so,$(wildcard scripts/examples/*.c))
$(BUILD)/examples/%.so: scripts/examples/%.c actor/env.h
	@mkdir -p $(@D)
	@echo "  WORLD   $@"
	@$(CC) -std=c11 -O2 -g $(WARN) -fPIC -shared -Iactor -o $@ $< -lm
.PHONY: examples
examples: $(EXAMPLES)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
# Objects of tests and benchmarks are kept. (.SECONDARY would let a library stand that lacks a new
# object whose source is older than the library.)
.PRECIOUS: $(BUILD)/obj/%.o

include $(sort $(wildcard scripts/make/*.mk))
