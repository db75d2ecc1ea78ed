# Ringmaster beside other libraries on the same two cores, in virtual environments outside of the repository. Results:
# build/bench-peers.json, and tables in Markdown. ARGS=--quick for the short form; scripts/bench/peers/run --help.
.PHONY: bench-peers bench-peers-install
bench-peers-install:
	@scripts/bench/peers/install

bench-peers: binaries $(BUILD)/bench/bench_ring bench-peers-install wheel-programs
	@BUILD=$(BUILD) scripts/bench/peers/run $(ARGS)
