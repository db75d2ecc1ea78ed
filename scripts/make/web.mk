# ringmaster-web, where libmicrohttpd is. A library of its own: no other program links it.
HAVE_MICROHTTPD := $(shell pkg-config --exists libmicrohttpd 2>/dev/null && echo 1)
ROOM_web := daemon/web
WEB := $(BUILD)/bin/ringmaster-web
WEB_PAGE := $(sort $(wildcard daemon/web/page/*))
$(eval $(call room_rules,web))

# The page is in the program, as bytes.
$(BUILD)/obj/daemon/web/page.o: $(WEB_PAGE)
	@mkdir -p $(@D)
	@cd daemon/web/page && $(LD) -r -z noexecstack -b binary -o $(abspath $@) $(notdir $^)

$(WEB): $(BUILD)/obj/daemon/web/main.o $(call lib,web) $(BUILD)/obj/daemon/web/page.o $(LINK_ALL)
	$(call link,$< $(call lib,web) $(BUILD)/obj/daemon/web/page.o,-lmicrohttpd)

# Its tests have of that library what they test.
$(BUILD)/tests/unit/daemon/web/test_guard: $(BUILD)/obj/daemon/web/guard.o
$(BUILD)/tests/unit/daemon/web/test_guard: TEST_SUPPORT += $(BUILD)/obj/daemon/web/guard.o

$(BUILD)/man/ringmaster-web.1: $(WEB)
	@mkdir -p $(@D); $(WEB) --generate man > $@.new && mv $@.new $@
$(BUILD)/completion/ringmaster-web.bash: $(WEB)
	@mkdir -p $(@D); $(WEB) --generate bash > $@.new && mv $@.new $@

# What `make install` installs of it.
ifneq ($(HAVE_MICROHTTPD),)
WEB_PROGRAM := $(WEB)
WEB_UNIT := ringmaster-web.service
WEB_MAN := $(BUILD)/man/ringmaster-web.1
WEB_COMPLETION := $(BUILD)/completion/ringmaster-web.bash
WEB_EXAMPLES := daemon/web/alerts.yml daemon/web/dashboard.json
binaries all: $(WEB_PROGRAM)
all install: $(WEB_MAN) $(WEB_COMPLETION)
generated: generated-metrics
.PHONY: generated-metrics
generated-metrics: $(WEB)
	@$(WEB) --generate metrics > docs/metrics.md.new && mv docs/metrics.md.new docs/metrics.md
endif
