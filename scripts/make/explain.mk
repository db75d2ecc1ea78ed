# How well `ringctl explain` predicts the rates of runs on this host (two and a half hours on a quiet host).
# docs/explain.md has the table; what docs/figures/explain.json has is not measured again.
.PHONY: explain-check
explain-check: all
	@BUILD=$(BUILD) scripts/bench/explain-check --write $(EXPLAIN)

# How good the settings are that `ringctl run FILE --tune` finds, of every shipped experiment (an hour on a quiet host);
# what docs/figures/tune.json has is not measured again.
.PHONY: tune-check
tune-check: all
	@BUILD=$(BUILD) scripts/bench/tune-check --write $(TUNE)
