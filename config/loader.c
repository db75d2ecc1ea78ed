/* loader: reads the text of an experiment. The steps are a scan (positions, plain messages),
 * jansson (values), overrides, the check of every key by the schema, and the checks between keys.
 * One message reports all errors. */
#include "config/check.h"
#include "config/config.h"
#include "config/json_memory.h"
#include "config/policy_from.h"
#include "config/source.h"
#include "config/tree.h"
#include "config/value.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RM_NAME_BYTES_MAX 47 /* rm_name_valid() */

int rm_config_defaults(struct rm_experiment *experiment)
{
    const struct rm_source nowhere = {.name = NULL};
    struct rm_findings findings = {.source = &nowhere};

    memset(experiment, 0, sizeof(*experiment));
    for (size_t i = 0; i < rm_key_count; i++) {
        if (rm_keys[i].required)
            continue;
        json_t *value = rm_value_default(&rm_keys[i]);
        if (!value)
            return -ENOMEM;
        rm_key_type_ops[rm_keys[i].type]->read(&rm_keys[i], value, experiment, &findings);
        json_decref(value);
    }
    return findings.total ? -EINVAL : 0;
}

/* Worlds in Python and Prolog need not be named: "gymnasium:ALE/Pong-v5" is ALE-Pong-v5, and
 * "worlds/maze.pl" is maze. */
static void name_world(struct rm_world_config *world)
{
    const char *from = world->python[0] ? world->python : world->prolog;
    const char *after = strrchr(from, world->python[0] ? ':' : '/');
    size_t used = 0;
    if (world->name[0])
        return;
    if (after && (!world->python[0] || !strncmp(from, "gymnasium:", 10)))
        from = after + 1;
    const size_t length = world->python[0] ? strlen(from) : strcspn(from, ".");
    for (const char *end = from + length; from < end && used < RM_NAME_BYTES_MAX; from++) {
        const bool fits = isalnum((unsigned char)*from) || (used > 0 && strchr("._-", *from));
        if (fits || used > 0)
            world->name[used++] = fits ? *from : '-';
    }
    world->name[used] = '\0';
}

static void read_object(const json_t *object, const char *prefix, struct rm_experiment *experiment,
                        struct rm_findings *findings)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)object, name, value)
    {
        char path[RM_KEY_PATH_MAX], is[64];
        if (rm_key_is_comment(name) || (!*prefix && !strcmp(name, "$schema")))
            continue;
        snprintf(path, sizeof(path), "%s%s%.80s", prefix, *prefix ? "." : "", name);
        const struct rm_key *key = rm_key_find(path);
        if (!*name) {
            rm_find(findings, prefix, true, "has an empty key, \"\"");
        } else if (strchr(name, '.')) {
            if (key || rm_key_is_section(path))
                rm_find(findings, path, true,
                        "a key must not contain a dot: sections are objects, {\"%.*s\": {...}}",
                        (int)strcspn(name, "."), name);
            else
                rm_tree_unknown(path, findings);
        } else if (key) {
            rm_key_type_ops[key->type]->read(key, value, experiment, findings);
        } else if (!rm_key_is_section(path)) {
            rm_tree_unknown(path, findings);
        } else if (!json_is_object(value)) {
            rm_find(findings, path, false, "is a section and should be an object, but is %s",
                    rm_value_brief(value, is, sizeof(is)));
        } else {
            read_object(value, path, experiment, findings);
        }
    }
}

/* All steps after parsing. Changes *experiment only on success. If an allocation failed since
 * `mark`, the findings are meaningless. */
static int read_tree(struct rm_experiment *experiment, const json_t *root, uint64_t mark,
                     struct rm_findings *findings, struct rm_error *error)
{
    struct rm_experiment fresh;
    int rc = rm_config_defaults(&fresh);
    if (rc)
        return rm_fail(error, rc, "the default configuration could not be created");
    read_object(root, "", &fresh, findings);
    name_world(&fresh.world);
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        if (key->required && !*((const char *)&fresh + key->offset) &&
            !rm_findings_touch(findings, findings->count, key->path))
            rm_find(findings, key->path, false, "is required");
    }
    rm_check_all(&fresh, findings);
    rc = rm_findings_report(findings, error);
    if (rm_json_failures() != mark)
        return rm_fail(error, -ENOMEM, "configuration: out of memory");
    if (rc == 0)
        *experiment = fresh;
    return rc;
}

int rm_config_parse(struct rm_experiment *experiment, const char *name, const char *text,
                    size_t bytes, const struct rm_override *overrides, size_t override_count,
                    struct rm_error *error)
{
    struct rm_source source = {.name = name,
                               .text = text,
                               .bytes = bytes,
                               .overrides = overrides,
                               .override_count = override_count};
    struct rm_findings findings = {.source = &source};
    const uint64_t mark = rm_json_failures();
    json_t *root = NULL;
    json_error_t why;

    int rc = rm_source_scan(&source, error);
    if (rc == 0) {
        root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
        if (!root && rm_json_failures() != mark)
            rc = rm_fail(error, -ENOMEM, "%s: out of memory", name);
        else if (!root) /* errors that only jansson finds: surrogates, \u0000, duplicate keys by
                         * escapes */
            rc = rm_fail(error, -EINVAL, "%s:%d:%d: %s", name, why.line, why.column, why.text);
    }
    if (rc == 0) {
        for (size_t i = 0; i < override_count; i++)
            rm_tree_override(root, overrides[i].text, &findings);
        rc = read_tree(experiment, root, mark, &findings, error);
    }
    json_decref(root);
    rm_source_close(&source);
    return rc;
}

static int place_recording(struct rm_experiment *experiment, const char *folder,
                           struct rm_error *error)
{
    char path[sizeof experiment->sample.from];
    if (!experiment->sample.from[0] || experiment->sample.from[0] == '/')
        return 0;
    const int length = snprintf(path, sizeof path, "%s/%s", folder, experiment->sample.from);
    if (length < 0 || (size_t)length >= sizeof path)
        return rm_fail(error, -ENAMETOOLONG, "sample.from: the path is too long");
    memcpy(experiment->sample.from, path, (size_t)length + 1);
    return 0;
}

/* Relative paths of policies and of a recording, and those among the world's options, begin where
 * the file is. */
static int place_paths(struct rm_experiment *experiment, const char *path, struct rm_error *error)
{
    char *folder = realpath(path, NULL);
    if (!folder)
        return 0;
    char *end = strrchr(folder, '/');
    end[end == folder] = '\0';
    int rc = rm_policy_from_place(experiment, folder, error);
    if (rc == 0)
        rc = place_recording(experiment, folder, error);
    const bool fits = strlen(folder) < sizeof(experiment->world.directory);
    if (rc == 0 && !experiment->world.directory[0] && !fits)
        rc = rm_fail(error, -ENAMETOOLONG, "%s: the path of its folder is too long", path);
    else if (rc == 0 && !experiment->world.directory[0])
        snprintf(experiment->world.directory, sizeof(experiment->world.directory), "%s", folder);
    free(folder);
    return rc;
}

int rm_config_load(struct rm_experiment *experiment, const char *path,
                   const struct rm_override *overrides, size_t override_count,
                   struct rm_error *error)
{
    FILE *in = fopen(path, "re");
    if (!in)
        return rm_fail(error, -errno, "%s: %s", path, strerror(errno));
    char *text = malloc(RM_SOURCE_BYTES_MAX + 1);
    if (!text) {
        fclose(in);
        return rm_fail(error, -ENOMEM, "%s: out of memory", path);
    }
    errno = 0;
    size_t bytes = fread(text, 1, RM_SOURCE_BYTES_MAX + 1, in);
    int rc =
        ferror(in)
            ? rm_fail(error, errno ? -errno : -EIO, "%s: %s", path, strerror(errno ? errno : EIO))
            : rm_config_parse(experiment, path, text, bytes, overrides, override_count, error);
    free(text);
    fclose(in);
    return rc ? rc : place_paths(experiment, path, error);
}

json_t *rm_config_get(const struct rm_experiment *experiment, const char *path,
                      struct rm_error *error)
{
    json_t *root = rm_config_to_json(experiment);
    json_t *value = json_incref(rm_tree_get(root, path));
    json_decref(root);
    if (!root) {
        rm_fail(error, -ENOMEM, "%.100s: out of memory", path);
    } else if (!value) {
        char quoted[101], words[320];
        snprintf(quoted, sizeof(quoted), "%s", path);
        rm_utf8_repair(quoted);
        rm_tree_unknown_words(path, words, sizeof(words));
        rm_fail(error, -ENOENT, "%s: %s", quoted, words);
    }
    return value;
}

int rm_config_set(struct rm_experiment *experiment, const char *path, const json_t *value,
                  struct rm_error *error)
{
    const struct rm_source nowhere = {.name = NULL};
    struct rm_findings findings = {.source = &nowhere};
    const uint64_t mark = rm_json_failures();
    json_t *root = rm_config_to_json(experiment);

    if (!root)
        return rm_fail(error, -ENOMEM, "%.100s: out of memory", path);
    rm_tree_set(root, path, json_deep_copy(value), &findings);
    int rc = findings.total ? rm_findings_report(&findings, error)
                            : read_tree(experiment, root, mark, &findings, error);
    if (rm_json_failures() != mark)
        rc = rm_fail(error, -ENOMEM, "%.100s: out of memory", path);
    json_decref(root);
    return rc;
}
