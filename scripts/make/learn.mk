# Learning tests: minutes long, so not in the default suite. Results: docs/learning.md.
LEARN := $(BUILD)/tests/learning/learn
$(LEARN): $(BUILD)/obj/tests/learning/learn.o $(LINK_ALL)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CC) $(ALL_CFLAGS) -rdynamic -o $@ $< -Wl,--start-group $(LINK_ALL) -Wl,--end-group $(LIBS)

# The whole table; LEARN_ARGS='--only cartpole --seeds 2' for a part of it. The results are committed.
LEARN_ARGS ?=
.PHONY: learn
learn: $(LEARN)
	@tests/learning/run-table $(LEARN) $(LEARN_ARGS) \
	    $(if $(LEARN_ARGS),,--json docs/learning.json --markdown docs/learning.md)

# Policy files against the library of their format and NumPy, in a throw-away environment.
.PHONY: formats
formats: $(BUILD)/tests/unit/learner/test_learner_safetensors $(BUILD)/tests/unit/learner/test_learner_policy_file
	@BUILD=$(BUILD) tests/oracle/check-safetensors --install || { code=$$?; [ $$code -eq 77 ]; }
