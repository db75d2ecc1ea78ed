# What tests/crash/test_slow_disk has loaded into the programs under test: an fsync that takes long.
$(BUILD)/tests/crash/slow_disk.so: tests/crash/data/slow_disk.c tests/crash/slow_disk.h
	@mkdir -p $(@D)
	@echo "  SHIM    $@"
	@$(CC) -std=c11 -D_GNU_SOURCE -I. -O1 -g $(WARN) -fPIC -shared -o $@ $<
$(BUILD)/tests/crash/test_slow_disk: $(BUILD)/tests/crash/slow_disk.so
