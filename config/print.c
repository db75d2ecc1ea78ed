/* print: writes an experiment as JSON and as text, and the differences between two experiments. */
#include "config/config.h"
#include "config/json_memory.h"
#include "config/print.h"
#include "config/tree.h"
#include "config/value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *rm_config_to_json(const struct rm_experiment *experiment)
{
    const struct rm_source nowhere = {.name = NULL};
    struct rm_findings findings = {.source = &nowhere};
    const uint64_t mark = rm_json_failures();
    json_t *root = json_object();
    for (size_t i = 0; root && i < rm_key_count; i++)
        rm_tree_set(root, rm_keys[i].path,
                    rm_key_type_ops[rm_keys[i].type]->write(&rm_keys[i], experiment), &findings);
    if (findings.total) {
        json_decref(root);
        return NULL;
    }
    return rm_json_whole(root, mark);
}

/* A list or object without lists or objects in it is printed on one line. */
static bool is_flat(const json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;
    json_array_foreach(value, i, member)
    {
        if (json_is_object(member) || json_is_array(member))
            return false;
    }
    json_object_foreach((json_t *)value, key, member)
    {
        if (json_is_object(member) || json_is_array(member))
            return false;
    }
    return true;
}

static void put_break(FILE *out, int indent, bool flat)
{
    if (indent < 0 || flat)
        fputs(indent < 0 ? "" : " ", out);
    else
        fprintf(out, "\n%*s", 2 * indent, "");
}

void rm_json_print(FILE *out, const json_t *value, int indent)
{
    char number[40];
    const char *key;
    json_t *member;
    size_t i, n = 0;
    int deeper = indent < 0 ? indent : indent + 1;

    if (json_is_real(value)) {
        fputs(rm_number_text(json_real_value(value), number, sizeof(number)), out);
    } else if (json_is_array(value)) {
        bool flat = is_flat(value);
        fputc('[', out);
        json_array_foreach(value, i, member)
        {
            if (n++)
                fputc(',', out);
            if (n > 1 || !flat)
                put_break(out, deeper, flat);
            rm_json_print(out, member, deeper);
        }
        if (n && !flat)
            put_break(out, indent, false);
        fputc(']', out);
    } else if (json_is_object(value)) {
        /* Elements of lists are short; sections have one line per key. */
        bool flat = is_flat(value) && json_object_size(value) <= 3;
        fputc('{', out);
        json_object_foreach((json_t *)value, key, member)
        {
            if (n++)
                fputc(',', out);
            if (n > 1 || !flat)
                put_break(out, deeper, flat);
            json_t *name = json_string(key);
            json_dumpf(name, out, JSON_ENCODE_ANY);
            json_decref(name);
            fputs(indent < 0 ? ":" : ": ", out);
            rm_json_print(out, member, deeper);
        }
        if (n && !flat)
            put_break(out, indent, false);
        fputc('}', out);
    } else {
        json_dumpf(value, out, JSON_ENCODE_ANY);
    }
}

char *rm_json_text(const json_t *value, bool lines)
{
    char *text = NULL;
    size_t bytes = 0;
    const uint64_t mark = rm_json_failures();
    FILE *out = value ? open_memstream(&text, &bytes) : NULL;
    if (!out)
        return NULL;
    rm_json_print(out, value, lines ? 0 : -1);
    if (lines)
        fputc('\n', out);
    const bool written = !ferror(out);
    if (fclose(out) || !written || rm_json_failures() != mark) {
        free(text);
        return NULL;
    }
    return text;
}

int rm_config_diff(const struct rm_experiment *before, const struct rm_experiment *after,
                   rm_config_diff_fn each, void *user)
{
    int differences = 0;
    bool whole = true;
    const uint64_t mark = rm_json_failures();
    for (size_t i = 0; i < rm_key_count && whole; i++) {
        const struct rm_key *key = &rm_keys[i];
        json_t *old = rm_key_type_ops[key->type]->write(key, before);
        json_t *new = rm_key_type_ops[key->type]->write(key, after);
        whole = old && new;
        if (whole && !json_equal(old, new)) {
            char *was = rm_json_text(old, false), *is = rm_json_text(new, false);
            differences++;
            whole = was && is;
            if (each && whole)
                each(user, key->path, was, is, key->hot != RM_COLD);
            free(was);
            free(is);
        }
        json_decref(old);
        json_decref(new);
    }
    return whole && rm_json_failures() == mark ? differences : -ENOMEM;
}
