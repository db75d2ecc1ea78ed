# check_ops compares a device's operations with the CPU's, for scripts/gpu-check and for whoever has a
# GPU; test_ops runs the same table on the emulated plugin. There, convolutions take few images at a
# time and have few blocks, so that there are several times.
.PHONY: check-ops
check-ops: $(BUILD)/tests/cuda/check_ops ## build the program that compares a GPU's operations with the CPU's
tests: $(BUILD)/tests/cuda/check_ops
$(BUILD)/emulated/learner/backend/cuda/patches.cu.o: EMULATED_FLAGS += -DRM_CONV_PATCH_BYTES=20000u
$(BUILD)/emulated/learner/backend/cuda/images.cu.o: EMULATED_FLAGS += -DRM_BLOCKS_MOST=1u
$(BUILD)/emulated/learner/backend/cuda/images_back.cu.o: EMULATED_FLAGS += -DRM_PARTS_MOST=2u
