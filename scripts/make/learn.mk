# Learning tests: minutes long, so not in the default suite. Results: build/learn-*.json.
LEARN := $(BUILD)/tests/learning/learn
$(LEARN): $(BUILD)/obj/tests/learning/learn.o $(LINK_ALL)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CC) $(ALL_CFLAGS) -rdynamic -o $@ $< -Wl,--start-group $(LINK_ALL) -Wl,--end-group $(LIBS)

LEARN_SEEDS  ?= 10
LEARN_NEEDED ?= 8
.PHONY: learn
learn: $(LEARN)
	@$(LEARN) config/cartpole-dqn.json 475 $(LEARN_SEEDS) $(LEARN_NEEDED) $(BUILD)/learn-cartpole-dqn.json

# Policy files against the library of their format and NumPy, in a throw-away environment.
.PHONY: formats
formats: $(BUILD)/tests/unit/learner/test_learner_safetensors $(BUILD)/tests/unit/learner/test_learner_policy_file
	@BUILD=$(BUILD) tests/oracle/check-safetensors --install || { code=$$?; [ $$code -eq 77 ]; }
