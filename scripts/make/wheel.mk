# A package for Python: build/ringmaster-VERSION-py3-none-PLATFORM.whl with the programs inside. They are linked
# statically but for glibc, and without the service manager's library, which no Python package contains.
WHEEL := $(BUILD)/wheel
WHEEL_LIBS := -Wl,-Bstatic -ljansson -luv_a -llz4 -lxxhash -lncursesw -ltinfo $(if $(HAVE_SECCOMP),-lseccomp) \
              -Wl,-Bdynamic -ldl -lm -lpthread
WHEEL_PROGRAMS := $(patsubst $(BUILD)/bin/%,$(WHEEL)/bin/%,$(BINARIES))

# The few sources that know of the service manager, once more without it.
WHEEL_OBJECTS := $(patsubst %.c,$(WHEEL)/obj/%.o,$(shell grep -l RM_HAVE_SYSTEMD daemon/*.c))
$(WHEEL)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  CC      $< (wheel)"
	@$(CC) $(filter-out -DRM_HAVE_SYSTEMD,$(ALL_CFLAGS)) $(BASE_ARCH) -MMD -MP -c $< -o $@

wheel_link = @mkdir -p $(@D); echo "  LINK    $@"; \
    $(CC) $(ALL_CFLAGS) -s $(1) -o $@ $(2) $(LINK_ALL) $(WHEEL_LIBS)
define wheel_program
$(WHEEL)/bin/$(1): $(BUILD)/obj/$(2)/main.o $(3) $(LINK_ALL)
	$$(call wheel_link,-rdynamic,$$< $(3))
endef
$(eval $(call wheel_program,ringmasterd,daemon,$(WHEEL_OBJECTS)))
$(eval $(call wheel_program,ringctl,daemon/ctl,$(WHEEL_OBJECTS)))
$(eval $(call wheel_program,ringmaster-solo,daemon/solo,$(WHEEL_OBJECTS)))
$(eval $(call wheel_program,ringmaster-actor,actor))
$(eval $(call wheel_program,ringmaster-learner,learner))

# Ringmaster's worlds, for ringmaster.make_vec(). It shows nothing of the libraries inside it.
WORLDS_CALLS := $(addprefix -Wl$(comma)-u$(comma)rm_vector_,open describe obs_bytes bind reset step text picture error close)
WHEEL_HIDDEN := -Wl,--exclude-libs,libjansson.a:libuv_a.a:liblz4.a:libxxhash.a:libncursesw.a:libtinfo.a:libseccomp.a
# Debian's jansson compares a file with stdin in code that no shared object can have; nobody reads files by it here.
$(WHEEL)/obj/stdin.o:
	@mkdir -p $(@D)
	@echo 'void *stdin;' | $(CC) -x c -fPIC -fvisibility=hidden -c -o $@ -
$(WHEEL)/lib/ringmaster-worlds.so: $(WHEEL)/obj/stdin.o $(LINK_ALL)
	$(call wheel_link,-shared $(WORLDS_CALLS) $(WHEEL_HIDDEN),$<)

$(WHEEL)/lib/ringmaster-stepper.so: $(STEPPER)
	@mkdir -p $(@D)
	@cp $< $@

# tests/protocol/check-wheel makes a wheel of them.
tests: wheel-programs
.PHONY: wheel wheel-programs
wheel-programs: $(WHEEL_PROGRAMS) $(addprefix $(WHEEL)/lib/ringmaster-,worlds.so $(if $(STEPPER),stepper.so))
wheel: deps
	$(REMAKE) -s wheel-programs
	@python3 scripts/wheel --version $(VERSION) --build $(WHEEL) --out $(BUILD)
-include $(shell find $(WHEEL)/obj -name '*.d' 2>/dev/null)
