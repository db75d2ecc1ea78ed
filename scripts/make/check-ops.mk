# check-ops: a device's operations against the CPU's, for scripts/gpu-check and for whoever has a GPU.
# The tests run the same table against the emulated plugin.
CHECK_OPS := $(BUILD)/gpu/check-ops

$(CHECK_OPS): $(BUILD)/obj/tests/cuda/check_ops.o $(TEST_SUPPORT) $(LINK_ALL)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CC) $(ALL_CFLAGS) -rdynamic -o $@ $< -Wl,--start-group $(TEST_SUPPORT) $(LINK_ALL) -Wl,--end-group $(LIBS)

.PHONY: check-ops
check-ops: $(CHECK_OPS) ## build the program that compares a GPU's operations with the CPU's
