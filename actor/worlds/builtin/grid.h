/* grid: shows worlds of cells as text and as pictures, from one function that returns the look of a
 * cell. Internal to actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_GRID_H
#define RM_ACTOR_WORLDS_BUILTIN_GRID_H

#include "actor/env.h"

enum { RM_GRID_PIXELS = 16 }; /* side of a cell in a picture: even, as film formats need it */

/* The look of a cell. */
struct rm_grid_look {
    const char *glyph; /* one column of a terminal, UTF-8 */
    uint8_t rgb[3];
};

struct rm_grid {
    uint32_t rows, columns;
    const struct rm_grid_look *(*look)(const struct rm_env *env, const void *world, uint32_t row,
                                       uint32_t column);
    const struct rm_env *env;
    const void *world; /* the world's own struct */
    uint32_t pixels;   /* side of a cell in a picture; 0: RM_GRID_PIXELS */
};

/* As in rm_env_ops. `below`: one more line, without its line feed; NULL: none. */
int rm_grid_text(const struct rm_grid *grid, const char *below, char *text, size_t size);
int rm_grid_picture(const struct rm_grid *grid, uint8_t *rgb);

/* Sets the picture's size in the spec. */
void rm_grid_describe(const struct rm_grid *grid, struct rm_env_spec *spec);

#endif
