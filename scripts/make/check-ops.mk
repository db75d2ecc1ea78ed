# check_ops compares a device's operations with the CPU's, for scripts/gpu-check and for whoever has a
# GPU; test_ops runs the same table on the emulated plugin.
.PHONY: check-ops
check-ops: $(BUILD)/tests/cuda/check_ops ## build the program that compares a GPU's operations with the CPU's
tests: $(BUILD)/tests/cuda/check_ops
