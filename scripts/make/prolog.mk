# The plugin for worlds in Prolog, ringmaster-prolog.so, where the headers and the library of SWI-Prolog are (Debian's
# swi-prolog-core); PROLOG=0 does without, as builds with sanitizers do. Nothing else depends on it, and it is opened for
# world.prolog alone.
PROLOG_CFLAGS := $(shell pkg-config --cflags-only-I swipl 2>/dev/null)
PROLOG ?= $(if $(PROLOG_CFLAGS),$(if $(findstring -fsanitize,$(SANITIZE)),,1))
PROLOG_PLUGIN := $(BUILD)/lib/ringmaster-prolog.so

# Its Prolog side is in it, as bytes.
$(BUILD)/obj/actor/worlds/prolog/host.o: actor/worlds/prolog/host.pl
	@mkdir -p $(@D)
	@cd $(<D) && $(LD) -r -z noexecstack -b binary -o $(abspath $@) $(<F)

$(BUILD)/obj/actor/worlds/prolog/plugin.o: ALL_CFLAGS += $(PROLOG_CFLAGS:-I%=-isystem %) -Wno-unknown-warning-option -Wno-format-truncation

# It stays once it is loaded (nodelete), because SWI-Prolog does.
$(PROLOG_PLUGIN): $(BUILD)/obj/actor/worlds/prolog/plugin.o $(BUILD)/obj/actor/worlds/prolog/host.o
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CC) $(ALL_CFLAGS) -shared -o $@ $^ $(shell pkg-config --libs swipl 2>/dev/null) -ldl -lm -Wl,-z,nodelete $(if $(SANITIZE),,-Wl,-z$(comma)defs)

binaries all: $(if $(filter-out 0,$(PROLOG)),$(PROLOG_PLUGIN))

# A benchmark that calls Prolog itself, beside the plugin.
$(BUILD)/obj/scripts/bench/bench_prolog.o: ALL_CFLAGS += $(if $(filter-out 0,$(PROLOG)),$(PROLOG_CFLAGS:-I%=-isystem %))
$(BUILD)/bench/bench_prolog: LIBS += $(if $(filter-out 0,$(PROLOG)),$(shell pkg-config --libs swipl 2>/dev/null))
$(BUILD)/bench/bench_prolog: $(if $(filter-out 0,$(PROLOG)),$(PROLOG_PLUGIN))
