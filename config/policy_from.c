#include "config/policy_from.h"

#include "config/print.h"
#include "config/value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the key --------------------------------------------------------------------------------- */

static char *text_of(const struct rm_key *key, const struct rm_experiment *experiment)
{
    return (char *)experiment + key->offset;
}

/* Is this the path of a file? */
static bool check_path(const json_t *value, const char *path, struct rm_findings *findings)
{
    char is[64];
    const char *text = json_string_value(value);
    if (!text)
        rm_find(findings, path, false, "should be the path of a policy's file, but is %s",
                rm_value_brief(value, is, sizeof(is)));
    else if (!text[0])
        rm_find(findings, path, false, "is empty, must be the path of a policy's file");
    else if (strlen(text) >= RM_PATH_TEXT_MAX)
        rm_find(findings, path, false, "%zu bytes; a path has at most %d", strlen(text),
                RM_PATH_TEXT_MAX - 1);
    else
        return true;
    return false;
}

static void read_from(const struct rm_key *key, const json_t *value,
                      struct rm_experiment *experiment, struct rm_findings *findings)
{
    char is[64], path[RM_KEY_PATH_MAX];
    const size_t found = findings->total;
    const char *name, *word = json_string_value(value);
    json_t *member, *kept = json_is_object(value) ? json_object() : json_incref((json_t *)value);

    if (json_is_object(value)) {
        json_object_foreach((json_t *)value, name, member)
        {
            snprintf(path, sizeof(path), "%s.%.80s", key->path, name);
            if (!rm_key_is_comment(name) && check_path(member, path, findings))
                json_object_set(kept, name, member);
        }
    } else if (!word) {
        rm_find(findings, key->path, false,
                "should be the path of a policy's file, or an object of paths by policy, but is %s",
                rm_value_brief(value, is, sizeof(is)));
    } else if (word[0]) {
        check_path(value, key->path, findings);
    }
    const bool none = word ? !word[0] : json_object_size(kept) == 0;
    char *text = findings->total == found && !none ? rm_json_text(kept, false) : NULL;
    if (text && strlen(text) >= key->bytes)
        rm_find(findings, key->path, false, "%zu bytes as JSON; at most %zu", strlen(text),
                key->bytes - 1);
    else if (findings->total == found)
        snprintf(text_of(key, experiment), key->bytes, "%s", text ? text : "");
    free(text);
    json_decref(kept);
}

/* NULL: no memory. */
static json_t *parsed(const char *text)
{
    return text[0] ? json_loads(text, JSON_DECODE_ANY, NULL) : json_string("");
}

static json_t *write_from(const struct rm_key *key, const struct rm_experiment *experiment)
{
    return parsed(text_of(key, experiment));
}

static json_t *schema_from(const struct rm_key *key)
{
    (void)key;
    return json_pack("{s:[s,s], s:{s:s}}", "type", "string", "object", "additionalProperties",
                     "type", "string");
}

static void allowed_from(const struct rm_key *key, char *text, size_t bytes)
{
    (void)key;
    snprintf(text, bytes, "a path, or paths by the names of policies");
}

const struct rm_key_type_ops rm_from_ops = {read_from, write_from, schema_from, allowed_from,
                                            "text or object"};

/* --- its files ------------------------------------------------------------------------------- */

bool rm_policy_from(const struct rm_experiment *experiment, const char *policy, char *path,
                    size_t bytes)
{
    json_t *from = parsed(experiment->policy.from);
    const char *text =
        json_string_value(json_is_object(from) ? json_object_get(from, policy) : from);
    snprintf(path, bytes, "%s", text ? text : "");
    json_decref(from);
    return path[0];
}

int rm_policy_from_each(const struct rm_experiment *experiment, rm_policy_from_fn each, void *user)
{
    json_t *from = parsed(experiment->policy.from), *path;
    const char *policy;
    int rc = 0;
    json_object_foreach(from, policy, path)
    {
        if (rc == 0)
            rc = each(user, policy);
    }
    json_decref(from);
    return rc;
}

/* A new reference; NULL: no memory. */
static json_t *placed(const json_t *path, const char *folder)
{
    const char *text = json_string_value(path);
    return text[0] == '/' || !text[0] ? json_deep_copy(path) : json_sprintf("%s/%s", folder, text);
}

int rm_policy_from_place(struct rm_experiment *experiment, const char *folder,
                         struct rm_error *error)
{
    if (!experiment->policy.from[0])
        return 0;
    json_t *from = parsed(experiment->policy.from), *whole = NULL, *path;
    const char *policy;

    if (json_is_string(from)) {
        whole = placed(from, folder);
    } else if (from) {
        whole = json_object();
        json_object_foreach(from, policy, path)
        {
            if (json_object_set_new(whole, policy, placed(path, folder)) < 0) {
                json_decref(whole);
                whole = NULL;
                break;
            }
        }
    }
    char *text = whole ? rm_json_text(whole, false) : NULL;
    json_decref(from);
    json_decref(whole);
    if (!text)
        return rm_fail(error, -ENOMEM, "policy.from: no memory");
    const bool fits = strlen(text) < sizeof(experiment->policy.from);
    if (fits)
        snprintf(experiment->policy.from, sizeof(experiment->policy.from), "%s", text);
    free(text);
    return fits ? 0 : rm_fail(error, -EINVAL, "policy.from: the paths are too long");
}
