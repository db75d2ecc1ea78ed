#include "config/schema.h"
#include "daemon/ctl/man_pages.h"
#include "daemon/ctl/mdoc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What may be written, by enum rm_key_type. */
static const char *const type_words[] = {
    [RM_KEY_BOOL] = "true or false", [RM_KEY_U32] = "integer",         [RM_KEY_U64] = "integer",
    [RM_KEY_F64] = "number",         [RM_KEY_ENUM] = "one of",         [RM_KEY_TEXT] = "string",
    [RM_KEY_NAME] = "name",          [RM_KEY_CHOICE] = "one of",       [RM_KEY_OPTIONS] = "object",
    [RM_KEY_MAP] = "word or list",   [RM_KEY_LAYERS] = "list",         [RM_KEY_FROZEN] = "list",
    [RM_KEY_INPUTS] = "object",      [RM_KEY_FROM] = "text or object", [RM_KEY_STAGES] = "list",
};
_Static_assert(sizeof type_words / sizeof type_words[0] == RM_KEY_TYPE_COUNT,
               "every type of key has words");

/* By enum rm_on_resume, of keys that are not hot. */
static const char *const resume_words[] = {
    [RM_ON_RESUME_SAME] = "",
    [RM_ON_RESUME_ANY] = "; on resume",
    [RM_ON_RESUME_MORE] = "; on resume if larger",
};

static void write_default(FILE *out, const struct rm_key *key)
{
    if (key->required)
        fprintf(out, "; required");
    else if (key->type == RM_KEY_BOOL)
        fprintf(out, "; default %s", key->fallback != 0 ? "true" : "false");
    else if (key->type == RM_KEY_ENUM)
        fprintf(out, "; default %s", key->names[(int)key->fallback]);
    else if (key->fallback_text && strlen(key->fallback_text) > 40)
        fprintf(out, "; default below");
    else if (key->fallback_text)
        fprintf(out, "; default %s", key->fallback_text[0] ? key->fallback_text : "empty");
    else
        fprintf(out, "; default %.16g", key->fallback);
}

/* "(integer, 1 to 1024 steps; default 32; hot)" */
static void write_facts(FILE *out, const struct rm_key *key)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *line = open_memstream(&text, &bytes);
    if (!line)
        return;
    bool number = key->type == RM_KEY_U32 || key->type == RM_KEY_U64 || key->type == RM_KEY_F64;
    fprintf(line, "(%s", type_words[key->type]);
    for (size_t i = 0; key->names && key->names[i]; i++)
        fprintf(line, "%s %s", i ? "," : "", key->names[i]);
    if (number && isfinite(key->high))
        fprintf(line, ", %s%.16g to %.16g", key->low_open ? "above " : "", key->low, key->high);
    else if (number)
        fprintf(line, ", %s %.16g", key->low_open ? "above" : "at least", key->low);
    if (key->unit && key->unit[0])
        fprintf(line, " %s", key->unit);
    write_default(line, key);
    fprintf(line, "%s)", key->hot != RM_COLD ? "; hot" : resume_words[key->on_resume]);
    fclose(line);
    rm_mdoc_text(out, text);
    free(text);
}

static size_t section_bytes(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

static void write_section(FILE *out, const char *path, size_t bytes)
{
    if (bytes == 0) {
        rm_mdoc_line(out, ".Ss Whole experiment");
        return;
    }
    rm_mdoc_line(out, ".Ss %.*s", (int)bytes, path);
    for (size_t i = 0; i < rm_section_count; i++)
        if (strlen(rm_sections[i].path) == bytes && !strncmp(rm_sections[i].path, path, bytes))
            rm_mdoc_text(out, rm_sections[i].doc);
}

static void write_keys(FILE *out)
{
    const char *current = NULL;
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        size_t bytes = section_bytes(key->path);
        if (!current || section_bytes(current) != bytes ||
            strncmp(current, key->path, bytes) != 0) {
            if (current)
                rm_mdoc_line(out, ".El");
            write_section(out, key->path, bytes);
            rm_mdoc_line(out, ".Bl -tag -width Ds");
        }
        current = key->path;
        rm_mdoc_line(out, ".It Cm %s", key->path);
        write_facts(out, key);
        rm_mdoc_line(out, ".br");
        rm_mdoc_text(out, key->doc);
        if (key->fallback_text && strlen(key->fallback_text) > 40) {
            rm_mdoc_text(out, "Default:");
            rm_mdoc_text(out, key->fallback_text);
        }
    }
    rm_mdoc_line(out, ".El");
}

static void write_layers(FILE *out)
{
    rm_mdoc_line(out, ".Sh LAYERS");
    rm_mdoc_text(out, "Each entry of `network.layers` is an object with a `type`, one of:");
    rm_mdoc_line(out, ".Bl -tag -width Ds");
    for (size_t i = 0; i < RM_LAYER_TYPE_COUNT; i++) {
        const struct rm_layer_row *row = &rm_layer_rows[i];
        rm_mdoc_line(out, ".It Cm %s", row->type);
        rm_mdoc_text(out, row->doc);
        for (const struct rm_layer_member *m = row->members; m->name; m++) {
            char text[256];
            snprintf(text, sizeof text, "Takes `%s`: %s.", m->name, m->doc);
            rm_mdoc_text(out, text);
        }
    }
    rm_mdoc_line(out, ".El");
}

void rm_man_config(FILE *out)
{
    rm_mdoc_head(out, "ringmaster.json", "5", "configuration of an experiment");
    rm_mdoc_line(out, ".Sh DESCRIPTION");
    rm_mdoc_text(
        out, "One JSON file describes an experiment. This page names keys by their path: "
             "`sample.batch` is the key `batch` of the object `sample`. Missing keys have their "
             "defaults. Unknown keys, wrong types, values out of range and values that contradict "
             "each other are refused, with file, line and column, before anything starts. `ringctl "
             "validate` checks a file, `ringctl schema` prints a JSON Schema for editors.\n\nKeys "
             "marked hot can be changed while the experiment runs, by `ringctl set` or by sending "
             "SIGHUP to `ringmasterd` after the file was changed. These keys, and keys marked on "
             "resume, may have other values when a run is resumed from its checkpoint. A change of "
             "any other key needs a new run.");
    rm_mdoc_line(out, ".Sh KEYS");
    write_keys(out);
    write_layers(out);
    rm_mdoc_line(out, ".Sh EXAMPLES");
    rm_mdoc_text(out, "Cart-pole in two actor processes, everything else by default:");
    rm_mdoc_line(out, ".Bd -literal -offset indent");
    rm_mdoc_line(out, "{");
    rm_mdoc_line(out, "  \"name\": \"cartpole\",");
    rm_mdoc_line(out, "  \"world\": {\"name\": \"cartpole\"},");
    rm_mdoc_line(out, "  \"actor\": {\"count\": 2, \"worlds\": 16}");
    rm_mdoc_line(out, "}");
    rm_mdoc_line(out, ".Ed");
    rm_mdoc_line(out, ".Sh SEE ALSO");
    rm_mdoc_line(out, ".Xr ringctl 1 ,");
    rm_mdoc_line(out, ".Xr ringmaster-worlds 7 ,");
    rm_mdoc_line(out, ".Xr ringmasterd 8");
}
