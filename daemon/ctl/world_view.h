/* world_view: describes a world, for people and as JSON: for `ringctl envs` and
 * ringmaster-worlds(7). */
#ifndef RM_DAEMON_CTL_WORLD_VIEW_H
#define RM_DAEMON_CTL_WORLD_VIEW_H

#include "actor/worlds/described.h"
#include "daemon/table.h"

#include <jansson.h>

/* A world with its default options. A separate process describes the world of a shared object. */
struct rm_world_view {
    struct rm_world_spec world;
    const struct rm_env_spec *spec;
    char *description;
};

int rm_world_view_open(struct rm_world_view *view, const char *name, const char *library,
                       struct rm_error *error);
void rm_world_view_close(struct rm_world_view *view);

/* "u8[10]", "code[5, 4] of 4 codes, 5 values each", "f32[4]"; for several observations "board
 * u8[16]; hand i16[up to 5]". The text is cut off at `size` bytes; RM_WORLD_TEXT_MAX is the size
 * that callers use. */
#define RM_WORLD_TEXT_MAX 1024
void rm_world_observation_text(const struct rm_env_agent *agent, char *text, size_t size);
/* The same for one observation. Returns the length of the whole text in bytes. */
size_t rm_world_one_observation_text(const struct rm_env_observation *of, char *text, size_t size);

/* "4"; for several choices in one step the actions of each: "2 x 3 x 4". */
void rm_world_actions_text(const struct rm_env_agent *agent, char *text, size_t size);

/* ": red, green": the words that an option allows; "" if it allows any word. */
void rm_world_option_text(const struct rm_env_option_doc *option, char *text, size_t size);

void rm_world_view_print(FILE *out, const struct rm_world_view *view, const struct rm_style *style);
json_t *rm_world_view_json(const struct rm_world_view *view);

#endif
