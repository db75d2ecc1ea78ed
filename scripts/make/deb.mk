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

# The package under a real systemd, in a container. Needs root.
.PHONY: test-systemd deps-system
deps-system:
	@scripts/install-packages system
test-systemd: deps-system deb
	@BUILD=$(BUILD) tests/systemd/boot build/ringmaster_$(VERSION)_$(shell dpkg --print-architecture).deb
