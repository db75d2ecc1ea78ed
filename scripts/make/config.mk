# The reference page stands in the repository, so that it can be read without a build; a test compares
# it with the table.
.PHONY: docs-config
docs-config: $(BUILD)/bin/ringctl
	$(BUILD)/bin/ringctl schema --markdown > docs/configuration.md.tmp
	@test -s docs/configuration.md.tmp && mv docs/configuration.md.tmp docs/configuration.md
