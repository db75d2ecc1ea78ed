# The loop of workers of Python worlds, ringmaster-stepper.so. The user's interpreter loads it and defines what it calls, so it
# is linked with nothing, and builds with sanitizers do without: their workers have the same loop in Python.
STEPPER := $(if $(SANITIZE),,$(BUILD)/lib/ringmaster-stepper.so)
$(BUILD)/lib/ringmaster-stepper.so: actor/worlds/python/stepper.c actor/env.h Makefile
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CC) $(ALL_CFLAGS) $(BASE_ARCH) -shared -o $@ $<

binaries all: $(STEPPER)
