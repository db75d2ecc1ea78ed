# A Debian package of what is committed: build/ringmaster_VERSION_ARCH.deb.
.PHONY: deb deps-deb
deps-deb:
	@scripts/install-packages package

DEB_ROOT := build/deb/ringmaster-$(VERSION)
deb: deps-deb
	rm -rf build/deb && mkdir -p $(DEB_ROOT)
	git archive HEAD | tar -x -C $(DEB_ROOT)
	cp -r scripts/debian $(DEB_ROOT)/debian
	@printf 'ringmaster (%s) bookworm; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- Ringmaster developers <ringmaster@example.org>  %s\n' \
	    '$(VERSION)' "$$(git log -1 --format=%cD)" > $(DEB_ROOT)/debian/changelog
	cd $(DEB_ROOT) && env -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage -b -us -uc > ../build.log 2>&1 || \
	    { tail -30 ../build.log; exit 1; }
	lintian --fail-on error,warning $(DEB_ROOT)/../ringmaster_$(VERSION)_*.changes
	@cp build/deb/ringmaster_$(VERSION)_*.deb build/ && ls build/ringmaster_$(VERSION)_*.deb

# The package under a real systemd, in a container or on a machine of its own. Both need root.
PACKAGE_FILE = build/ringmaster_$(VERSION)_$(shell dpkg --print-architecture).deb
WORLDS_BOOTED := $(BUILD)/examples/tictactoe.so $(BUILD)/tests/worlds/rogue.so
.PHONY: test-systemd test-vm deps-system deps-vm
deps-system:
	@scripts/install-packages system
deps-vm:
	@scripts/install-packages vm
test-systemd: deps-system deb $(WORLDS_BOOTED)
	@BUILD=$(BUILD) tests/systemd/boot $(PACKAGE_FILE)
test-vm: deps-vm deb $(WORLDS_BOOTED)
	@BUILD=$(BUILD) tests/systemd/boot-vm $(PACKAGE_FILE)
