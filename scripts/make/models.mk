# Model-checks the shared-memory protocols: `make models`, or `make models MODEL=weights`.
.PHONY: models
models: deps-test
	@tests/model/run $(MODEL)
