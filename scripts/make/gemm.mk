# The measurement behind the choice of matrix library; the others are used where they are installed.
.PHONY: gemm-libraries
gemm-libraries: $(BUILD)/bench/bench_gemm
	@$< --table
