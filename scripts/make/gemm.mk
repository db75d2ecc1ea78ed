# Products beside those of the packaged libraries, where they are installed: shape by shape. Debian
# has libxsmm as an archive only, so it is linked into the benchmark where it is there.
$(BUILD)/bench/bench_gemm: LIBS += $(if $(wildcard /usr/lib/libxsmm.a),-Wl$(comma)-u$(comma)libxsmm_smmdispatch -lxsmm -lxsmmnoblas)
comma := ,

.PHONY: gemm-libraries
gemm-libraries: $(BUILD)/bench/bench_gemm
	@$< --table
