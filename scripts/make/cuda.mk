# The CUDA plugin, ringmaster-cuda.so, where nvcc is there: `make cuda`; `make run`, `make install` and
# `make test` have it made as well, CUDA=0 does without. All of it takes about three minutes of one processor, and
# through ccache, where there is one, that once; `make` alone leaves it out for that. CUDA_ARCH: compute
# capabilities to compile for, those of the list that this nvcc knows; the last one goes in as PTX too, for devices
# that come later.
NVCC ?= $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
NVCC_RUN := $(shell command -v ccache 2>/dev/null) $(NVCC)
CUDA_ARCH ?= $(eval CUDA_ARCH := $$(cuda_known))$(CUDA_ARCH)
cuda_known = $(filter $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch)),80 90 100 120)
CUDA_SOURCES := $(sort $(wildcard learner/backend/cuda/*.cu))
CUDA_PLUGIN  := $(BUILD)/lib/ringmaster-cuda.so
# What the plugin links of the rest: errors and numbers, nothing that knows of processes.
CUDA_HOST := $(BUILD)/obj/shm/base/error.o
CUDA_GENCODE = $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) \
               -gencode arch=compute_$(lastword $(CUDA_ARCH)),code=compute_$(lastword $(CUDA_ARCH))
CUDA_FLAGS = -std=c++20 -O3 -lineinfo -I. $(CUDA_GENCODE) -Werror all-warnings --expt-relaxed-constexpr \
             -Xcompiler -fPIC,-Wall,-Wextra,-Werror,-Wno-missing-field-initializers,-Wno-format-truncation,-fvisibility=hidden \
             -DRM_VERSION='"$(VERSION)"'

# Files whose numbers are the CPU's to the bit: products and sums are rounded one by one.
CUDA_EXACT := draw scans worlds
$(foreach f,$(CUDA_EXACT),$(BUILD)/obj/learner/backend/cuda/$(f).cu.o): CUDA_FLAGS += -fmad=false

$(BUILD)/obj/learner/backend/cuda/%.cu.o: learner/backend/cuda/%.cu scripts/make/cuda.mk
	@mkdir -p $(@D)
	@echo "  NVCC    $<"
	@$(NVCC_RUN) $(CUDA_FLAGS) --resource-usage -MMD -MP -MF $(@:.o=.d) -c $< -o $@ 2> $(@:.o=.usage) || \
	  { cat $(@:.o=.usage) >&2; exit 1; }
	@grep -v '^ptxas info\|^    ' $(@:.o=.usage) >&2 || true # warnings; tests/cuda/check-plugin reads the rest

$(CUDA_PLUGIN): $(patsubst %.cu,$(BUILD)/obj/%.cu.o,$(CUDA_SOURCES)) $(CUDA_HOST)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(NVCC) -shared -cudart static $(CUDA_GENCODE) -o $@ $^ -lcublasLt -ldl -lpthread \
	  -Xlinker --exclude-libs=ALL -Xlinker -z,defs

# Sanitizers say nothing about it: their builds do without.
CUDA ?= $(if $(NVCC),1)
binaries test: $(if $(filter-out 0,$(CUDA)),$(if $(SANITIZE),,$(CUDA_PLUGIN)))

.PHONY: cuda
cuda: ## the CUDA plugin (needs nvcc)
ifeq ($(NVCC),)
	@echo "make cuda: no nvcc; set NVCC=/path/to/nvcc or install the CUDA toolkit" >&2; exit 1
else
	@$(MAKE) --no-print-directory $(CUDA_PLUGIN)
endif

# --- the emulated plugin ---------------------------------------------------------------------------
# The same sources compiled for the host against tests/cuda/emulation, whose headers come before any
# toolkit's. Everything is tested on it; a process with RINGMASTER_CUDA_PLUGIN in its environment loads it.
EMULATION        := tests/cuda/emulation
EMULATED_PLUGIN  := $(BUILD)/lib/emulated/ringmaster-cuda.so
EMULATED_OBJECTS := $(patsubst %.cu,$(BUILD)/emulated/%.cu.o,$(CUDA_SOURCES)) \
                    $(patsubst %.cc,$(BUILD)/emulated/%.o,$(sort $(wildcard $(EMULATION)/*.cc)))
# The host's C++ compiler of the same make as CC, unless CXX is set.
ifeq ($(origin CXX),default)
CXX := $(if $(findstring clang,$(CC)),$(patsubst %clang,%clang++,$(firstword $(subst -, ,$(CC)))),g++)
endif
# -ffp-contract=off: the same numbers whatever the host can.
EMULATED_FLAGS = -std=c++20 -I$(EMULATION) -I. -Wall -Wextra -Werror -Wno-unknown-pragmas \
                 -Wno-missing-field-initializers -Wno-unknown-warning-option \
                 -Wno-format-truncation -fno-strict-aliasing \
                 -fno-math-errno -ffp-contract=off -pthread -fPIC -fvisibility=hidden -D_GNU_SOURCE \
                 -DRM_VERSION='"$(VERSION)"' $(CFLAGS) $(if $(SANITIZE),-O2) $(EMULATED_SANITIZE)
# Threads of a device take turns on one thread of the host's, which holds the emulation's lock: there is no race between
# them that ThreadSanitizer could see, and checking makes each of their steps a hundred times slower. So their code and
# their stacks are not instrumented; launch.cc is, so that grids that run at the same time are found.
EMULATED_SANITIZE = $(SANITIZE)
DEVICE_CODE := $(shell grep -lE '__device__|__global__|rm_map' $(CUDA_SOURCES) tests/cuda/probes/*.cu) \
               $(patsubst %,$(EMULATION)/%.cc,block switch shared tensor gemm)
$(patsubst %.cc,$(BUILD)/emulated/%.o,$(DEVICE_CODE:%.cu=$(BUILD)/emulated/%.cu.o)): \
    EMULATED_SANITIZE = $(filter-out -fsanitize=thread,$(SANITIZE))

$(BUILD)/emulated/%.cu.o: %.cu scripts/make/cuda.mk
	@mkdir -p $(@D)
	@echo "  EMULATE $<"
	@$(CXX) $(EMULATED_FLAGS) $(BASE_ARCH) -MMD -MP -x c++ -c $< -o $@
$(BUILD)/emulated/%.o: %.cc scripts/make/cuda.mk
	@mkdir -p $(@D)
	@echo "  CXX     $<"
	@$(CXX) $(EMULATED_FLAGS) $(BASE_ARCH) -MMD -MP -c $< -o $@

$(EMULATED_PLUGIN): $(EMULATED_OBJECTS) $(CUDA_HOST)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CXX) -shared $(CFLAGS) $(SANITIZE) -o $@ $^ -ldl -lm -lpthread $(if $(SANITIZE),,-Wl,-z$(comma)defs)
comma := ,

-include $(shell find $(BUILD)/emulated -name '*.d' 2>/dev/null)

.PHONY: cuda-emulated
cuda-emulated: $(EMULATED_PLUGIN) ## the CUDA plugin on the host, for tests
tests: $(EMULATED_PLUGIN)
# Most of the emulation's time is in products.
$(BUILD)/emulated/$(EMULATION)/gemm.o: EMULATED_FLAGS += -O3 -ffp-contract=fast

# Kernels that are wrong on purpose, for the emulation's own tests.
EMULATED_PROBES := $(BUILD)/lib/emulated/probes.so
$(EMULATED_PROBES): $(patsubst %.cu,$(BUILD)/emulated/%.cu.o,$(sort $(wildcard tests/cuda/probes/*.cu))) \
                    $(filter-out %.cu.o,$(EMULATED_OBJECTS))
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CXX) -shared $(CFLAGS) $(SANITIZE) -o $@ $^ -ldl -lm -lpthread
tests: $(EMULATED_PROBES)

# NCCL's double, for a process with LD_LIBRARY_PATH=$(BUILD)/lib/emulated.
EMULATED_NCCL := $(BUILD)/lib/emulated/libnccl.so.2
$(EMULATED_NCCL): $(BUILD)/emulated/tests/cuda/nccl/nccl.o
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CXX) -shared -Wl,-soname,libnccl.so.2 $(CFLAGS) $(SANITIZE) -o $@ $^ -ldl -lpthread
cuda-emulated tests: $(EMULATED_NCCL)

# A build of a test that loads any of it updates these files first, and `make` alone does so
# with what is there already: no test runs on yesterday's.
EMULATED_FILES := $(EMULATED_PLUGIN) $(EMULATED_PROBES) $(EMULATED_NCCL)
EMULATED_TESTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(filter tests/cuda/%,$(TEST_SOURCES)) \
                  $(shell grep -lE 'RINGMASTER_CUDA_PLUGIN|emulated|rm_test_device' \
                      $(filter-out tests/cuda/%,$(TEST_SOURCES))))
$(EMULATED_TESTS): | $(EMULATED_FILES)
all: $(wildcard $(EMULATED_FILES))
