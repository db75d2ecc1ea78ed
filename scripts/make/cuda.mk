# The CUDA plugin, ringmaster-cuda.so, where nvcc is there (`make cuda` asks for it; `make` builds it
# beside the binaries if NVCC is found). CUDA_ARCH: compute capabilities to compile for; the last one
# goes in as PTX too, for devices that come later.
NVCC ?= $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
CUDA_ARCH ?= 80 90 100
CUDA_SOURCES := $(sort $(wildcard learner/backend/cuda/*.cu))
CUDA_PLUGIN  := $(BUILD)/lib/ringmaster-cuda.so
# What the plugin links of the rest: errors and numbers, nothing that knows of processes.
CUDA_HOST := $(BUILD)/obj/shm/base/error.o
CUDA_GENCODE = $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) \
               -gencode arch=compute_$(lastword $(CUDA_ARCH)),code=compute_$(lastword $(CUDA_ARCH))
CUDA_FLAGS = -std=c++17 -O3 -lineinfo -I. $(CUDA_GENCODE) -Werror all-warnings --expt-relaxed-constexpr \
             -Xcompiler -fPIC,-Wall,-Wextra,-Werror,-Wno-missing-field-initializers,-Wno-format-truncation,-fvisibility=hidden \
             -DRM_VERSION='"$(VERSION)"'

# Files whose numbers are the CPU's to the bit: products and sums are rounded one by one.
CUDA_EXACT := scans
$(foreach f,$(CUDA_EXACT),$(BUILD)/obj/learner/backend/cuda/$(f).cu.o): CUDA_FLAGS += -fmad=false

$(BUILD)/obj/learner/backend/cuda/%.cu.o: learner/backend/cuda/%.cu $(wildcard learner/backend/cuda/*.h learner/backend/*.h) scripts/make/cuda.mk
	@mkdir -p $(@D)
	@echo "  NVCC    $<"
	@$(NVCC) $(CUDA_FLAGS) -c $< -o $@

$(CUDA_PLUGIN): $(patsubst %.cu,$(BUILD)/obj/%.cu.o,$(CUDA_SOURCES)) $(CUDA_HOST)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(NVCC) -shared -cudart static $(CUDA_GENCODE) -o $@ $^ -lcublasLt -ldl -lpthread \
	  -Xlinker --exclude-libs=ALL -Xlinker -z,defs

.PHONY: cuda
cuda: ## the CUDA plugin (needs nvcc)
ifeq ($(NVCC),)
	@echo "make cuda: no nvcc; set NVCC=/path/to/nvcc or install the CUDA toolkit" >&2; exit 1
else
	@$(MAKE) --no-print-directory $(CUDA_PLUGIN)
endif
