# What ringctl generates, and installing everything.
.PHONY: generated install uninstall

RINGCTL := $(BUILD)/bin/ringctl

# Through a file beside it: a generator that fails leaves the page as it was.
generate = @mkdir -p $(@D); $(RINGCTL) $(1) > $(2).new && mv $(2).new $(2)

# Man pages and completion are built. Those written by hand are in docs/man.
GENERATED_PAGES := $(addprefix $(BUILD)/man/,ringctl.1 ringmaster.json.5 ringmaster-worlds.7 ringmaster-metrics.7)
COMPLETION := $(BUILD)/completion/ringctl.bash
all: $(GENERATED_PAGES) $(COMPLETION)

$(GENERATED_PAGES): $(RINGCTL)
	$(call generate,man $(@F),$@)

$(COMPLETION): $(RINGCTL)
	$(call generate,completion bash,$@)

# The reference of all keys is in the tree, so that it can be read without a build; a test compares it with the table.
generated: $(RINGCTL)
	$(call generate,schema --markdown,docs/configuration.md)

BINDIR  ?= $(PREFIX)/bin
LIBEXECDIR ?= $(PREFIX)/libexec/ringmaster
SYSTEMDDIR ?= $(PREFIX)/lib
DATADIR ?= $(PREFIX)/share
DOCDIR  ?= $(DATADIR)/doc/ringmaster
# Programs look for it upwards of themselves, below share/ (actor/worlds/bridges/python_launch.c).
PYTHONDIR ?= $(DATADIR)/ringmaster/python/ringmaster
INSTALL ?= install

# Worlds of one's own need actor/env.h and nothing else.
install: binaries $(GENERATED_PAGES) $(COMPLETION)
	$(INSTALL) -d $(addprefix $(DESTDIR),$(BINDIR) $(LIBEXECDIR) $(PREFIX)/include/ringmaster $(PYTHONDIR) \
	    $(DOCDIR)/examples/prolog $(DATADIR)/bash-completion/completions $(SYSTEMDDIR)/systemd/system \
	    $(SYSTEMDDIR)/sysusers.d $(SYSTEMDDIR)/tmpfiles.d)
	$(INSTALL) -m 755 $(filter %/ringctl %/ringmasterd,$(BINARIES)) $(WEB_PROGRAM) $(DESTDIR)$(BINDIR)
	$(INSTALL) -m 755 $(filter-out %/ringctl %/ringmasterd,$(BINARIES)) $(DESTDIR)$(LIBEXECDIR)
	for plugin in $(CUDA_PLUGIN) $(PROLOG_PLUGIN) $(STEPPER); do \
	    if [ -f $$plugin ]; then $(INSTALL) -m 755 $$plugin $(DESTDIR)$(LIBEXECDIR) || exit 1; fi; done
	for unit in ringmaster@.service $(WEB_UNIT); do sed 's#@BINDIR@#$(BINDIR)#' systemd/$$unit \
	    > $(DESTDIR)$(SYSTEMDDIR)/systemd/system/$$unit || exit 1; done
	$(INSTALL) -m 644 systemd/ringmaster.sysusers \
	    $(DESTDIR)$(SYSTEMDDIR)/sysusers.d/ringmaster.conf
	$(INSTALL) -m 644 systemd/ringmaster.tmpfiles \
	    $(DESTDIR)$(SYSTEMDDIR)/tmpfiles.d/ringmaster.conf
	$(INSTALL) -m 644 systemd/ringmaster-gpu.conf $(DESTDIR)$(DOCDIR)/examples
	$(INSTALL) -m 644 systemd/ringmaster-python.conf $(DESTDIR)$(DOCDIR)/examples
	$(INSTALL) -m 644 $(wildcard python/ringmaster/*.py) $(DESTDIR)$(PYTHONDIR)
	$(INSTALL) -m 644 actor/env.h $(DESTDIR)$(PREFIX)/include/ringmaster
	for file in $(COMPLETION) $(WEB_COMPLETION); do name=$${file##*/}; $(INSTALL) -m 644 $$file \
	    $(DESTDIR)$(DATADIR)/bash-completion/completions/$${name%.bash} || exit 1; done
	$(INSTALL) -m 644 $(wildcard config/*.json scripts/examples/*_reader.py) $(DESTDIR)$(DOCDIR)/examples
	for file in $(WEB_EXAMPLES); do \
	    $(INSTALL) -m 644 $$file $(DESTDIR)$(DOCDIR)/examples/ringmaster-$${file##*/} || exit 1; done
	$(INSTALL) -m 644 $(wildcard config/prolog/*.pl) $(DESTDIR)$(DOCDIR)/examples/prolog
	$(INSTALL) -m 644 $(wildcard docs/*.md) $(DESTDIR)$(DOCDIR)
	for page in docs/man/* $(GENERATED_PAGES) $(WEB_MAN); do \
	    directory=$(DESTDIR)$(DATADIR)/man/man$${page##*.}; \
	    $(INSTALL) -d $$directory && $(INSTALL) -m 644 $$page $$directory || exit 1; done

# With the PREFIX and DESTDIR of the installation. Runs, /etc/ringmaster and the user stay.
OWN_FOLDERS := $(PYTHONDIR) $(DATADIR)/ringmaster/python $(DATADIR)/ringmaster $(DOCDIR)/examples/prolog $(DOCDIR)/examples $(DOCDIR) $(LIBEXECDIR) $(PREFIX)/include/ringmaster
uninstall:
	rm -f $(addprefix $(DESTDIR),$(addprefix $(BINDIR)/,ringctl ringmasterd ringmaster-web) \
	    $(addprefix $(LIBEXECDIR)/,ringmaster-actor ringmaster-learner ringmaster-solo $(notdir $(CUDA_PLUGIN) $(PROLOG_PLUGIN) $(STEPPER))) \
	    $(addprefix $(SYSTEMDDIR)/,systemd/system/ringmaster@.service systemd/system/ringmaster-web.service sysusers.d/ringmaster.conf \
	        tmpfiles.d/ringmaster.conf) \
	    $(addprefix $(DOCDIR)/,$(notdir $(wildcard docs/*.md))) \
	    $(addprefix $(DOCDIR)/examples/,ringmaster-gpu.conf ringmaster-python.conf \
	        ringmaster-alerts.yml ringmaster-dashboard.json $(notdir $(wildcard config/*.json scripts/examples/*_reader.py))) \
	    $(addprefix $(DOCDIR)/examples/prolog/,$(notdir $(wildcard config/prolog/*.pl))) \
	    $(addprefix $(PYTHONDIR)/,$(notdir $(wildcard python/ringmaster/*.py))) \
	    $(PREFIX)/include/ringmaster/env.h $(addprefix $(DATADIR)/bash-completion/completions/,ringctl ringmaster-web) $(DATADIR)/man/man1/ringmaster-web.1 \
	    $(foreach page,$(notdir $(wildcard docs/man/*) $(GENERATED_PAGES)),$(DATADIR)/man/man$(lastword $(subst ., ,$(page)))/$(page)))
	rm -rf $(DESTDIR)$(PYTHONDIR)/__pycache__
	for folder in $(addprefix $(DESTDIR),$(OWN_FOLDERS)); do \
	    [ ! -d $$folder ] || rmdir --ignore-fail-on-non-empty $$folder || exit 1; done
