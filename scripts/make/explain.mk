# How well `ringctl explain` predicts the rates of runs on this host; docs/explain.md has the table.
.PHONY: explain-check
explain-check: all
	@BUILD=$(BUILD) scripts/bench/explain-check --write $(EXPLAIN)
