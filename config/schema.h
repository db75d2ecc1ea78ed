/* schema: the table of configuration keys. One row per key drives the loader, the defaults, the
 * range checks, printing, comparing, the JSON Schema, the reference page and hot reload. To add a
 * key: a field in experiment.h and a row in schema.c; for an enum also the names of its values in
 * names.c.
 *
 * Read-only data; any thread. */
#ifndef RM_CONFIG_SCHEMA_H
#define RM_CONFIG_SCHEMA_H

#include "config/config.h"
#include "config/experiment.h"
#include "config/names.h"

#include <stddef.h>

/* Bytes of a key path in messages, NUL included; longer ones are cut. */
#define RM_KEY_PATH_MAX 192

/* Type of a key; config/value.c has the functions of each type. */
enum rm_key_type {
    RM_KEY_BOOL = 0, /* bool */
    RM_KEY_U32,      /* uint32_t */
    RM_KEY_U64,      /* uint64_t, at most 2^53 - 1 so that every JSON tool keeps it */
    RM_KEY_F64,      /* double */
    RM_KEY_ENUM,     /* an enum; its values index `names` */
    RM_KEY_TEXT,     /* char[]; low and high bound its length in bytes */
    RM_KEY_NAME,     /* char[]; letters, digits, '.', '_' and '-': safe as a file name */
    RM_KEY_CHOICE,   /* char[]; one of `names` */
    RM_KEY_OPTIONS,  /* world.options, evaluation.options, sweep: an object */
    RM_KEY_MAP,      /* policy.map: "independent", "shared" or a list of policy numbers */
    RM_KEY_LAYERS,   /* network.layers: a list of objects, see rm_layer_rows */
    RM_KEY_FROZEN,   /* policy.frozen: a list of objects */
    RM_KEY_INPUTS,   /* network.inputs: lists of layers by name */
    RM_KEY_FROM,     /* policy.from: a path, or paths by policy */
    RM_KEY_STAGES,   /* curriculum: a list of objects */
    RM_KEY_TYPE_COUNT
};

#define RM_COLD (-1) /* not hot-reloadable */

/* May the key have another value when a run is resumed? Keys that affect learning or its data must
 * be the same; keys on the run's length, its device and its supervision may change. Hot keys may
 * always change. */
enum rm_on_resume {
    RM_ON_RESUME_SAME = 0, /* no */
    RM_ON_RESUME_ANY,
    RM_ON_RESUME_MORE, /* only to a larger value, or to 0 (no end) */
};

struct rm_key {
    const char *path; /* "sample.batch" */
    enum rm_key_type type;
    size_t offset, bytes;      /* the field in struct rm_experiment */
    double low, high;          /* allowed range, both ends included unless low_open */
    bool low_open;             /* low itself is not allowed */
    bool required;             /* no default: the file must set it */
    double fallback;           /* default of numbers, booleans and enums */
    const char *fallback_text; /* default of text; of compound keys, JSON text */
    const char *const *names;  /* of enums and choices, ends with NULL */
    const char *unit;          /* "" or what the number counts */
    int hot;                   /* enum rm_hot, or RM_COLD */
    enum rm_on_resume on_resume;
    const char *doc;
};

extern const struct rm_key rm_keys[];
extern const size_t rm_key_count;

/* Sections ("sample", "algorithm.target") with their descriptions, in order: config/sections.c. */
struct rm_section {
    const char *path;
    const char *doc;
};
extern const struct rm_section rm_sections[];
extern const size_t rm_section_count;

/* Members of each type of network layer: config/layers.c. */
enum rm_layer_member_type { RM_MEMBER_U32, RM_MEMBER_BOOL, RM_MEMBER_F64 };
struct rm_layer_member {
    const char *name; /* "units" */
    enum rm_layer_member_type type;
    size_t offset; /* in struct rm_layer_config */
    double low, high;
    double fallback; /* NAN: must be given */
    const char *doc;
};
#define RM_LAYER_MEMBERS_MAX 6
struct rm_layer_row {
    const char *type, *doc;
    struct rm_layer_member members[RM_LAYER_MEMBERS_MAX + 1]; /* ends with name NULL */
};
extern const struct rm_layer_row rm_layer_rows[RM_LAYER_TYPE_COUNT];
#define RM_LAYER_UNITS_MAX 16384

/* The key of this path, or NULL. */
const struct rm_key *rm_key_find(const char *path);

/* Is `path` a section, the beginning of some key's path? */
bool rm_key_is_section(const char *path);

/* Is `name` a key that is ignored in every object ("//", "comment"), so that files can have
 * remarks? */
bool rm_key_is_comment(const char *name);

#endif
