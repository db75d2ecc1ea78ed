#include "actor/worlds/options.h"

#include "config/config.h"
#include "config/print.h"
#include "config/utf8.h"
#include "config/value.h"
#include "shm/board.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the table -------------------------------------------------------------------------------- */

/* What is wrong with a row of the table, or NULL. */
static const char *row_fault(const struct rm_env_option_doc *doc)
{
    if (!rm_name_valid(doc->key))
        return "its key cannot be a name: " RM_NAME_RULE;
    if (doc->type > RM_ENV_PATH)
        return "has an unknown type";
    if (doc->most > RM_OPTIONS_MAX)
        return "its list has more than 256 values";
    if (doc->words && doc->type != RM_ENV_WORD)
        return "lists words, but its type is not a word";
    for (uint32_t i = 0; doc->words && doc->words[i]; i++)
        if (i == RM_OPTIONS_MAX || !rm_name_valid(doc->words[i]))
            return "lists more than 256 words, or one that cannot be a name: " RM_NAME_RULE;
    return NULL;
}

int rm_options_check_table(const char *what, const struct rm_env_option_doc *docs,
                           struct rm_error *error)
{
    for (uint32_t i = 0; docs && docs[i].key; i++) {
        const char *fault = i == RM_OPTIONS_MAX ? "there are more than 256" : row_fault(&docs[i]);
        if (fault)
            return rm_fail(error, -EPROTO, "%s: option %u: %s", what, i, fault);
    }
    return 0;
}

bool rm_option_is_number(const struct rm_env_option_doc *doc)
{
    return doc->type <= RM_ENV_WHOLE;
}

const char *rm_option_takes(const struct rm_env_option_doc *doc)
{
    static const char *const names[][2] = {
        [RM_ENV_NUMBER] = {"number", "list of numbers"},
        [RM_ENV_WHOLE] = {"whole number", "list of whole numbers"},
        [RM_ENV_WORD] = {"word", "list of words"},
        [RM_ENV_PATH] = {"path", "list of paths"},
    };
    return names[doc->type][doc->most > 0];
}

void rm_option_fallback_text(const struct rm_env_option_doc *doc, char *text, size_t size)
{
    if (doc->most)
        snprintf(text, size, "empty");
    else if (rm_option_is_number(doc))
        snprintf(text, size, "%g", doc->fallback);
    else
        snprintf(text, size, "%s", doc->fallback_text ? doc->fallback_text : "none");
}

/* --- values ----------------------------------------------------------------------------------- */

#define LINES_MAX                                                                                  \
    (RM_ERROR_TEXT - 160) /* of one message; the rest is for what is put around them */

struct reading {
    struct rm_options *options;
    const char *name; /* the world's */
    const struct rm_env_option_doc *docs;
    const char *directory;
    size_t values, texts, paths; /* used so far */
};

/* "red, green, blue", as far as it fits. */
static void list_words(const char *const *words, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0; words[i] && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", words[i]);
}

static const struct rm_env_option_doc *find_doc(const struct reading *r, const char *key,
                                                struct rm_error *error)
{
    const char *keys[RM_OPTIONS_MAX + 1] = {NULL};
    const struct rm_env_option_doc *docs = r->docs;
    for (uint32_t i = 0; docs && docs[i].key; i++) {
        if (strcmp(docs[i].key, key) == 0)
            return &docs[i];
        keys[i] = docs[i].key;
    }
    if (!keys[0]) {
        rm_fail(error, -EINVAL, "world.options.%s: the world '%s' has no options", key, r->name);
        return NULL;
    }
    const char *nearest = rm_nearest(key, keys);
    char all[512] = "";
    list_words(keys, all, sizeof(all));
    rm_fail(error, -EINVAL, "world.options.%s: the world '%s' has no such option%s%s%s", key,
            r->name, nearest ? "; the nearest is '" : "; it has ", nearest ? nearest : all,
            nearest ? "'" : "");
    return NULL;
}

static int take_number(struct reading *r, const struct rm_env_option_doc *doc, const json_t *value,
                       const char *path, struct rm_error *error)
{
    char is[64];
    if (!json_is_number(value) && !json_is_boolean(value))
        return rm_fail(error, -EINVAL, "%s should be a number, but is %s", path,
                       rm_value_brief(value, is, sizeof(is)));
    const double number = json_is_number(value) ? json_number_value(value) : json_is_true(value);
    if (!(number >= doc->low && number <= doc->high))
        return rm_fail(error, -ERANGE, "%s is %.17g, must be %.17g..%.17g (%s)", path, number,
                       doc->low, doc->high, doc->doc ? doc->doc : "");
    if (doc->type == RM_ENV_WHOLE && number != floor(number))
        return rm_fail(error, -EINVAL, "%s is %.17g, must be a whole number", path, number);
    r->options->values[r->values++] = number;
    return 0;
}

static int take_word(struct reading *r, const struct rm_env_option_doc *doc, const json_t *value,
                     const char *path, struct rm_error *error)
{
    const char *word = json_string_value(value);
    uint32_t i = 0;
    while (doc->words && doc->words[i] && strcmp(doc->words[i], word) != 0)
        i++;
    if (doc->words && !doc->words[i]) {
        char is[64], all[512] = "";
        const char *nearest = rm_nearest(word, doc->words);
        list_words(doc->words, all, sizeof(all));
        return rm_fail(error, -EINVAL, "%s is %s, must be one of %s%s%s%s", path,
                       rm_value_brief(value, is, sizeof(is)), all,
                       nearest ? "; the nearest is '" : "", nearest ? nearest : "",
                       nearest ? "'" : "");
    }
    r->options->texts[r->texts++] = word;
    return 0;
}

static int take_path(struct reading *r, const json_t *value, const char *path,
                     struct rm_error *error)
{
    const char *text = json_string_value(value);
    char *whole = NULL;
    if (!text[0])
        return rm_fail(error, -EINVAL, "%s is empty, must be the path of a file or folder", path);
    if (text[0] != '/' && r->directory[0]) {
        const size_t bytes = strlen(r->directory) + strlen(text) + 2;
        if (!(whole = malloc(bytes)))
            return rm_fail(error, -ENOMEM, "%s: no memory", path);
        snprintf(whole, bytes, "%s/%s", r->directory, text);
        r->options->paths[r->paths++] = whole;
    }
    r->options->texts[r->texts++] = whole ? whole : text;
    return 0;
}

static int take_value(struct reading *r, const struct rm_env_option_doc *doc, const json_t *value,
                      const char *path, struct rm_error *error)
{
    char is[64];
    if (rm_option_is_number(doc))
        return take_number(r, doc, value, path, error);
    if (!json_is_string(value))
        return rm_fail(error, -EINVAL, "%s should be a text between quotes, but is %s", path,
                       rm_value_brief(value, is, sizeof(is)));
    return doc->type == RM_ENV_WORD ? take_word(r, doc, value, path, error)
                                    : take_path(r, value, path, error);
}

/* Appends an option; nothing where it is wrong. */
static int take_option(struct reading *r, const char *key, json_t *value, struct rm_error *error)
{
    struct rm_options *o = r->options;
    const struct rm_env_option_doc *doc = find_doc(r, key, error);
    const double *values = o->values + r->values;
    const char *const *texts = o->texts + r->texts;
    char path[RM_TEXT_MAX + 48];
    int rc = 0;

    if (!doc)
        return -EINVAL;
    snprintf(path, sizeof(path), "world.options.%.63s", key);
    const bool list = json_is_array(value);
    const size_t count = list ? json_array_size(value) : 1;
    if (list && !doc->most)
        return rm_fail(error, -EINVAL, "%s should be one %s, but is a list", path,
                       rm_option_takes(doc));
    if (doc->most && count > doc->most)
        return rm_fail(error, -ERANGE, "%s has %zu values, must have at most %u", path, count,
                       doc->most);
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (list)
            snprintf(path, sizeof(path), "world.options.%.63s[%zu]", key, i);
        rc = take_value(r, doc, list ? json_array_get(value, i) : value, path, error);
    }
    if (rc < 0)
        return rc;
    const bool number = rm_option_is_number(doc);
    o->option[o->count++] = (struct rm_env_option){
        .key = key,
        .value = number && count ? values[0] : 0,
        .text = !number && count ? texts[0] : NULL,
        .count = (uint32_t)count,
        .values = number && doc->most ? values : NULL,
        .texts = !number && doc->most ? texts : NULL,
    };
    return 0;
}

/* The most that all of them together can hold. */
static size_t count_values(const json_t *json)
{
    const char *key;
    json_t *value;
    size_t total = 1;
    json_object_foreach((json_t *)json, key, value)
    {
        total += json_is_array(value) ? json_array_size(value) : 1;
    }
    return total;
}

static int allocate(struct rm_options *o, const struct rm_world_config *config,
                    struct rm_error *error)
{
    o->json = json_loads(config->options[0] ? config->options : "{}", 0, NULL);
    if (!json_is_object(o->json))
        return rm_fail(error, -EINVAL, "world.options: is no object");
    const size_t total = count_values(o->json);
    o->option = calloc(json_object_size(o->json) + 1, sizeof *o->option);
    o->values = calloc(total, sizeof *o->values);
    o->texts = calloc(total, sizeof *o->texts);
    o->paths = calloc(total, sizeof *o->paths);
    if (!o->option || !o->values || !o->texts || !o->paths)
        return rm_fail(error, -ENOMEM, "world.options: no memory for %zu values", total);
    return 0;
}

int rm_options_read(struct rm_options *options, const char *name,
                    const struct rm_env_option_doc *docs, const struct rm_world_config *config,
                    struct rm_error *error)
{
    struct reading r = {
        .options = options, .name = name, .docs = docs, .directory = config->directory};
    char lines[LINES_MAX] = "", tail[40] = "";
    size_t used = 0, more = 0;
    const char *key;
    json_t *value;

    *options = (struct rm_options){.count = 0};
    int first = allocate(options, config, error);
    if (first < 0) {
        rm_options_free(options);
        return first;
    }
    json_object_foreach(options->json, key, value)
    {
        struct rm_error one;
        const int rc = take_option(&r, key, value, &one);
        if (rc == 0)
            continue;
        first = first ? first : rc;
        rm_utf8_repair(one.text);
        if (more || (used && used + strlen(one.text) + 2 > sizeof(lines)))
            more++;
        else /* of the first only what fits */
            used += (size_t)snprintf(lines + used, sizeof(lines) - used, "%s%s", used ? "\n" : "",
                                     one.text);
    }
    if (first == 0)
        return 0;
    rm_options_free(options);
    if (more)
        snprintf(tail, sizeof(tail), "\n... and %zu more", more);
    return rm_fail(error, first, "%s%s", lines, tail);
}

void rm_options_free(struct rm_options *options)
{
    for (size_t i = 0; options->paths && options->paths[i]; i++)
        free(options->paths[i]);
    free(options->paths);
    free(options->option);
    free(options->values);
    free(options->texts);
    json_decref(options->json);
    *options = (struct rm_options){.count = 0};
}

int rm_options_evaluation_world(const struct rm_experiment *experiment,
                                struct rm_world_config *world)
{
    json_t *options, *other;
    *world = experiment->world;
    if (!experiment->evaluation.options[0])
        return 0;
    options = json_loads(world->options[0] ? world->options : "{}", 0, NULL);
    other = json_loads(experiment->evaluation.options, 0, NULL);
    char *text = options && other && json_object_update(options, other) == 0
                     ? rm_json_text(options, false)
                     : NULL;
    const bool fits = text && strlen(text) < sizeof(world->options);
    if (fits)
        snprintf(world->options, sizeof(world->options), "%s", text);
    json_decref(options);
    json_decref(other);
    free(text);
    return fits ? 0 : -ENOMEM;
}
