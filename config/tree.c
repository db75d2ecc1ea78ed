#include "config/tree.h"
#include "config/synonyms.h"
#include "config/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A component of a path: a name, or an index of a list. */
struct component {
    char name[RM_KEY_PATH_MAX];
    bool element;
    size_t index;
};

/* Removes the next component from *path. False when it is malformed or at the end. */
static bool next_component(const char **path, bool first, struct component *c)
{
    const char *p = *path;
    c->element = *p == '[';
    if (c->element) {
        char *end;
        if (p[1] < '0' || p[1] > '9')
            return false;
        c->index = strtoul(p + 1, &end, 10);
        if (*end != ']')
            return false;
        *path = end + 1;
        return true;
    }
    if (!first && *p++ != '.')
        return false;
    size_t n = strcspn(p, ".[");
    if (n == 0 || n >= sizeof(c->name))
        return false;
    memcpy(c->name, p, n);
    c->name[n] = 0;
    *path = p + n;
    return true;
}

static json_t *child(json_t *node, const struct component *c)
{
    return c->element ? json_array_get(node, c->index) : json_object_get(node, c->name);
}

json_t *rm_tree_get(json_t *root, const char *path)
{
    struct component c;
    for (bool first = true; *path && root; first = false) {
        if (!next_component(&path, first, &c))
            return NULL;
        root = child(root, &c);
    }
    return root;
}

/* A message if `node` has no child `c`; NULL if it has. */
static const char *obstacle(const json_t *node, const struct component *c)
{
    if (c->element)
        return json_is_array(node) && c->index < json_array_size(node)
                   ? NULL
                   : "the list has no such element";
    return json_is_object(node) ? NULL : "its parent is not an object";
}

/* The child `c` of `node`, created if it does not exist. */
static json_t *descend(json_t *node, const struct component *c, const char *path, size_t bytes)
{
    char whole[RM_KEY_PATH_MAX];
    json_t *below = child(node, c);
    if (below)
        return below;
    memcpy(whole, path, bytes);
    whole[bytes] = 0;
    const struct rm_key *key = rm_key_find(whole);
    below = key && !key->required ? rm_value_default(key) : json_object();
    return json_object_set_new(node, c->name, below) ? NULL : below;
}

void rm_tree_set(json_t *root, const char *path, json_t *value, struct rm_findings *findings)
{
    static const char no_path[] = "is not the path of a key";
    const char *p = path, *wrong = NULL;
    struct component c;
    bool more = value && strlen(path) < RM_KEY_PATH_MAX;

    for (bool first = true; more; first = false) {
        if (!next_component(&p, first, &c))
            break;
        if ((wrong = obstacle(root, &c)))
            break;
        if (!*p) {
            /* Both functions consume the value, and refuse a name that is not UTF-8. */
            if (c.element ? json_array_set_new(root, c.index, value)
                          : json_object_set_new(root, c.name, value))
                rm_find(findings, path, true, "%s", no_path);
            return;
        }
        root = descend(root, &c, path, (size_t)(p - path));
        more = root != NULL;
    }
    rm_find(findings, path, true, "%s", wrong ? wrong : no_path);
    json_decref(value);
}

void rm_tree_override(json_t *root, const char *text, struct rm_findings *findings)
{
    char path[RM_KEY_PATH_MAX];
    size_t n = strcspn(text, "=");

    if (text[n] != '=' || n == 0 || n >= sizeof(path)) {
        rm_find(findings, NULL, false, "--set %.100s: must be key=value, such as sample.batch=32",
                text);
        return;
    }
    memcpy(path, text, n);
    path[n] = 0;
    text += n + 1;
    const struct rm_key *key = rm_key_find(path);
    bool wants_text = key && (key->type == RM_KEY_TEXT || key->type == RM_KEY_NAME ||
                              key->type == RM_KEY_ENUM || key->type == RM_KEY_CHOICE);
    json_t *value = NULL;
    if (strlen(text) <= RM_SOURCE_BYTES_MAX && (!wants_text || *text == '"'))
        value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (!value)
        value = json_string(text);
    if (!value) {
        rm_find(findings, path, false, "is not UTF-8 text");
        return;
    }
    rm_tree_set(root, path, value, findings);
}

/* --- what was meant ------------------------------------------------------------------------ */

static const char *leaf(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

enum { PATHS_MOST = 512 };

/* Of all keys and sections; ends with NULL. */
static void list_paths(const char *paths[PATHS_MOST])
{
    size_t count = 0;
    for (size_t i = 0; i < rm_key_count && count < PATHS_MOST - 1; i++)
        paths[count++] = rm_keys[i].path;
    for (size_t i = 0; i < rm_section_count && count < PATHS_MOST - 1; i++)
        paths[count++] = rm_sections[i].path;
    paths[count] = NULL;
}

/* The nearest key in the same section, or NULL. */
static const char *nearest_sibling(const char *path, const char *const *paths)
{
    const char *siblings[PATHS_MOST], *leaves[PATHS_MOST];
    const size_t prefix = (size_t)(leaf(path) - path);
    size_t count = 0;
    for (; *paths; paths++)
        if ((size_t)(leaf(*paths) - *paths) == prefix && !strncmp(*paths, path, prefix)) {
            siblings[count] = *paths;
            leaves[count++] = leaf(*paths);
        }
    leaves[count] = NULL;
    const char *near = rm_nearest(leaf(path), leaves);
    for (size_t i = 0; near && i < count; i++)
        if (leaves[i] == near)
            return siblings[i];
    return NULL;
}

/* The nearest key, or a key with the same last part in another section; or NULL. */
static const char *nearest_key(const char *path, const char *const *paths)
{
    const char *near = nearest_sibling(path, paths);
    for (size_t i = 0; !near && paths[i]; i++)
        if (!strcmp(leaf(paths[i]), leaf(path)))
            near = paths[i];
    return near ? near : rm_nearest(path, paths);
}

void rm_tree_unknown_words(const char *path, char *text, size_t bytes)
{
    const char *paths[PATHS_MOST], *near;
    const struct rm_synonym *synonym = rm_synonym_of_key(leaf(path));

    list_paths(paths);
    /* In a section a typing error is likelier than another library's name. */
    if (synonym && (leaf(path) == path || !nearest_sibling(path, paths)))
        snprintf(text, bytes, "unknown key; what other libraries call %s is \"%s\" here%s%s%s",
                 synonym->theirs, synonym->ours, synonym->note ? " (" : "",
                 synonym->note ? synonym->note : "", synonym->note ? ")" : "");
    else if ((near = nearest_key(path, paths)))
        snprintf(text, bytes, "unknown key; did you mean \"%s\"?", near);
    else
        snprintf(text, bytes, "unknown key");
}

void rm_tree_unknown(const char *path, struct rm_findings *findings)
{
    char text[320];
    rm_tree_unknown_words(path, text, sizeof(text));
    rm_find(findings, path, true, "%s", text);
}
