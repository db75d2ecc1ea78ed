# Learning tests: minutes long, so not in the default suite. docs/figures/learning.json keeps every seed, and `make
# figures` writes docs/learning.md from it. What is there already is not run again: delete it to begin anew.

# LEARN_ARGS='--only cartpole --seeds 1-20 --mode free' for a part of the table, which is printed and not kept.
LEARN_ARGS ?=
LEARN_KEPT := $(if $(LEARN_ARGS),,--results docs/figures/learning.json)
.PHONY: learn learn-long
learn: binaries
	@BUILD=$(BUILD) tests/learning/run-table $(LEARN_ARGS) $(LEARN_KEPT)

# The rows that take half an hour a seed.
learn-long: binaries
	@BUILD=$(BUILD) tests/learning/run-table --long $(LEARN_ARGS) $(LEARN_KEPT)

# The table of docs/goodhart.md, printed, and its plots: two experiments over three seeds. GOODHART_ARGS='--seeds 101-101'.
GOODHART_ARGS ?=
.PHONY: goodhart
goodhart: binaries
	@BUILD=$(BUILD) tests/learning/run-goodhart $(GOODHART_ARGS)

# What distilled policies do in context, into docs/figures/histories.json: three seeds, which take six minutes each. Then
# what the learners of the shipped sweep do, which takes two. `make figures` writes tables and plot of docs/histories.md
# from it. HISTORIES_ARGS='--seeds 1-3 --set run.steps=2000' for other runs, which are printed and not kept.
HISTORIES_ARGS ?=
HISTORIES_KEPT := --results docs/figures/histories.json
.PHONY: histories
histories: binaries
	@BUILD=$(BUILD) tests/learning/run-histories $(if $(HISTORIES_ARGS),$(HISTORIES_ARGS),$(HISTORIES_KEPT))
ifeq ($(HISTORIES_ARGS),)
	@BUILD=$(BUILD) tests/learning/run-histories --sweep $(HISTORIES_KEPT)
endif

# Policy files against the library of their format and NumPy, in a throw-away environment.
.PHONY: formats
formats: $(BUILD)/tests/unit/learner/net/test_learner_safetensors $(BUILD)/tests/unit/learner/net/test_learner_policy_file
	@BUILD=$(BUILD) tests/oracle/check-safetensors --install || { code=$$?; [ $$code -eq 77 ]; }
