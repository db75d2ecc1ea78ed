/* json_schema: writes the table of keys as JSON Schema (draft 2020-12), for editors that complete
 * and check. */
#include "config/json_memory.h"
#include "config/config.h"
#include "config/tree.h"
#include "config/value.h"

#include <string.h>

/* An object that allows nothing but its properties and remarks. */
static json_t *new_section(const char *doc)
{
    return json_pack("{s:s, s:s, s:{s:{s:s}, s:{s:s}}, s:b}", "type", "object", "description", doc,
                     "properties", "//", "description", "A remark; ignored.", "comment",
                     "description", "A remark; ignored.", "additionalProperties", 0);
}

/* The properties object that holds the last component of `path`, and that component. */
static json_t *properties_of(json_t *root, const char *path, const char **leaf)
{
    json_t *node = json_object_get(root, "properties");
    const char *dot;
    while ((dot = strchr(path, '.'))) {
        char name[RM_KEY_PATH_MAX];
        memcpy(name, path, (size_t)(dot - path));
        name[dot - path] = 0;
        node = json_object_get(json_object_get(node, name), "properties");
        path = dot + 1;
    }
    *leaf = path;
    return node;
}

/* "x-on-resume": may the key have another value when a run is resumed? */
static const char *const resume_words[] = {
    [RM_ON_RESUME_SAME] = "same",
    [RM_ON_RESUME_ANY] = "any",
    [RM_ON_RESUME_MORE] = "larger",
};

json_t *rm_config_schema(void)
{
    const char *leaf;
    const uint64_t mark = rm_json_failures();
    json_t *root = new_section("An experiment of Ringmaster.");

    json_object_set_new(root, "$schema",
                        json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(root, "title", json_string("Ringmaster experiment"));
    json_object_set_new(json_object_get(root, "properties"), "$schema",
                        json_pack("{s:s, s:s}", "type", "string", "description",
                                  "Where editors find this schema; ignored."));
    /* Sections stand before the keys, and outer ones before inner ones. */
    for (size_t i = 0; i < rm_section_count; i++) {
        json_t *in = properties_of(root, rm_sections[i].path, &leaf);
        json_object_set_new(in, leaf, new_section(rm_sections[i].doc));
    }
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        json_t *in = properties_of(root, key->path, &leaf);
        json_t *schema = rm_key_type_ops[key->type]->schema(key);
        json_object_set_new(schema, "description", json_string(key->doc));
        if (key->hot != RM_COLD)
            json_object_set_new(schema, "x-hot", json_true());
        json_object_set_new(schema, "x-on-resume", json_string(resume_words[key->on_resume]));
        if (!key->required)
            json_object_set_new(schema, "default", rm_value_default(key));
        json_object_set_new(in, leaf, schema);
    }
    /* The one required key, world.name; a world in Python or Prolog has one without. */
    json_object_set_new(root, "required", json_pack("[s]", "world"));
    json_object_set_new(json_object_get(json_object_get(root, "properties"), "world"), "anyOf",
                        json_pack("[{s:[s]}, {s:[s]}, {s:[s]}]", "required", "name", "required",
                                  "python", "required", "prolog"));
    return rm_json_whole(root, mark);
}
