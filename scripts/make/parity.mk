# Networks and optimizers against PyTorch: `make parity`. Not part of `make test`: it fetches 140 MB once.
.PHONY: parity
parity: $(BUILD)/tests/oracle/dump_net $(BUILD)/tests/oracle/dump_optimizers
	@tests/oracle/parity $(BUILD) || { code=$$?; [ $$code -eq 77 ]; }
