# What the tests of actor/worlds/worlds.c load: the worked example, and shared objects each wrong in one way.
BROKEN_WORLDS := no_entry null_table old_abi short_table no_step bad_dtype bad_phase idle_phase no_actions \
                 no_reason many_choices empty_choice short_choices several_observations box reversed_box unlisted_box \
                 observation_twice observation_name observation_count \
                 figure_name figure_twice empty_words
BROKEN_WORLD_LIBRARIES := $(BROKEN_WORLDS:%=$(BUILD)/tests/worlds/%.so)

$(BUILD)/tests/worlds/%.so: tests/unit/actor/worlds/data/broken_world.c actor/env.h
	@mkdir -p $(@D)
	@echo "  WORLD   $@"
	@$(CC) -std=c11 -O1 -g $(WARN) -fPIC -shared -Iactor -DBROKEN_$* -o $@ $<

# The same, and the example, as they were compiled against version 2 of the header: a copy of it is kept.
V2 := tests/unit/actor/worlds/data/v2
$(BUILD)/tests/worlds/v2_%.so: tests/unit/actor/worlds/data/broken_world.c $(V2)/env.h
	@mkdir -p $(@D)
	@echo "  WORLD   $@"
	@$(CC) -std=c11 -O1 -g $(WARN) -fPIC -shared -I$(V2) -DBROKEN_$* -o $@ $<
$(BUILD)/tests/worlds/tictactoe_v2.so: scripts/examples/tictactoe.c $(V2)/env.h
	@mkdir -p $(@D)
	@echo "  WORLD   $@"
	@$(CC) -std=c11 -O2 $(WARN) -fPIC -shared -I$(V2) -o $@ $<
V2_WORLDS := $(patsubst %,$(BUILD)/tests/worlds/%.so,tictactoe_v2 v2_short_table v2_no_step v2_bad_dtype v2_old_spec)
$(BUILD)/tests/unit/actor/worlds/test_world_library $(BUILD)/tests/unit/actor/worlds/test_rule_check: $(V2_WORLDS)

$(BUILD)/tests/unit/actor/worlds/test_world_library: $(EXAMPLES) $(BROKEN_WORLD_LIBRARIES)
$(BUILD)/tests/unit/actor/worlds/test_world_all $(BUILD)/tests/unit/actor/worlds/test_world_example \
$(BUILD)/tests/unit/actor/worlds/test_world_connect: $(EXAMPLES)

# A world that crashes, hangs or reaches for what it is not to have.
$(BUILD)/tests/worlds/rogue.so: tests/unit/actor/worlds/data/rogue_world.c actor/env.h shm/layout.h shm/board.h
	@mkdir -p $(@D)
	@echo "  WORLD   $@"
	@$(CC) -std=c11 -D_GNU_SOURCE -O1 -g $(WARN) -fPIC -shared -Iactor -I. -pthread -o $@ $< -lm
$(BUILD)/tests/crash/test_worlds $(BUILD)/tests/unit/actor/worlds/test_sandbox $(BUILD)/tests/unit/daemon/test_probe \
$(BUILD)/tests/unit/actor/worlds/test_ambient: $(BUILD)/tests/worlds/rogue.so
$(BUILD)/tests/unit/actor/worlds/test_described: $(EXAMPLES)

# A world that takes options of every type.
$(BUILD)/tests/worlds/choosy.so: tests/unit/actor/worlds/data/choosy_world.c actor/env.h
	@mkdir -p $(@D)
	@echo "  WORLD   $@"
	@$(CC) -std=c11 -O1 -g $(WARN) -fPIC -shared -Iactor -o $@ $<
$(BUILD)/tests/unit/actor/worlds/test_options $(BUILD)/tests/unit/actor/worlds/test_described: $(BUILD)/tests/worlds/choosy.so

# A world that breaks one rule of docs/worlds.md at a time.
$(BUILD)/tests/worlds/unruly.so: tests/unit/actor/worlds/data/unruly_world.c actor/env.h actor/player.h
	@mkdir -p $(@D)
	@echo "  WORLD   $@"
	@$(CC) -std=c11 -D_GNU_SOURCE -O1 -g $(WARN) -fPIC -shared -Iactor -I. -o $@ $<
$(BUILD)/tests/unit/actor/worlds/test_rule_check: $(BUILD)/tests/worlds/unruly.so $(EXAMPLES)
tests: $(BUILD)/tests/worlds/rogue.so $(BUILD)/tests/worlds/unruly.so
